-- With the rights of the owner, as agui_internal.caller.
create or replace view agui_internal.erased_caller as
select
    case
        when own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then own.low
        else (encode(substring(sha256(known.salt || substring(uuid_send(own.low) for 8)) for 8), 'hex') || '0000000000000000')::uuid
    end as low,
    case
        when own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff' then own.high
        else (encode(substring(sha256(known.salt || substring(uuid_send(own.high) for 8)) for 8), 'hex') || 'ffffffffffffffff')::uuid
    end as high
from agui_internal.caller as own
cross join agui_internal.erasure_salt as known;

comment on view agui_internal.erased_caller is
    'agui_internal.caller as keys of agui.erasure, whose policy uses it.';
comment on column agui_internal.erased_caller.low is
    'The smallest key; null: a pool that has not set agui.scope.';
comment on column agui_internal.erased_caller.high is
    'The greatest key; null: a pool that has not set agui.scope.';
