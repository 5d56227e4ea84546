-- The casts change nothing. Tools that read the definition, such as sqlc, take the column types from
-- them.
-- always: thread_key, run_no, input, hash, bytes
create or replace view agui.input with (security_invoker = true) as
select
    stored.thread_key,
    stored.run_no,
    coalesce(stored.input, agui_internal.joined_input(stored.thread_key, stored.skeleton, stored.sections)::json)::json as input,
    coalesce(stored.hash, sha256(convert_to(stored.input::text, 'UTF8')))::bytea as hash,
    coalesce(stored.bytes, octet_length(stored.input::text))::int as bytes
from agui.run_input as stored;

comment on view agui.input is
    'The inputs that runs were begun with, beside their events. A row of agui.run_input may be whole '
    'or in parts: this is the text of both.';
comment on column agui.input.thread_key is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
comment on column agui.input.run_no is 'Number of the run in its thread.';
comment on column agui.input.input is 'The input (RunAgentInput), byte for byte.';
comment on column agui.input.hash is 'sha256 of its text.';
comment on column agui.input.bytes is 'Size of its text in bytes.';

-- The casts change nothing. Tools that read the definition, such as sqlc, take the column types from
-- them.
create or replace view agui.message with (security_invoker = true) as
select
    version.thread_key,
    version.message_no,
    version.message_id,
    version.role,
    coalesce(version.body, part.body)::json as body
from agui.message_version as version
-- The limit makes this one look-up for each message. A join of a young table reads all parts of the thread for each.
left join lateral (
    select part.part_no, part.body
    from agui.input_part as part
    where part.thread_key = version.thread_key and part.kind = 'message' and part.part_no = version.part_no
    limit 1
) as part on true
where version.part_no is null or part.part_no is not null;

comment on view agui.message is
    'The versions of messages that snapshots refer to. A row of agui.message_version may have its text, '
    'or point to a part of the inputs: this is the text of both.';
comment on column agui.message.thread_key is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
comment on column agui.message.message_no is 'Number of the version in its thread.';
comment on column agui.message.message_id is 'id of the message, decoded; null if it has none.';
comment on column agui.message.role is 'role of the message, decoded; null if it has none.';
comment on column agui.message.body is 'The message in the form that AG-UI clients use.';

-- With the rights of the owner: a role learns only about itself. Policies depend on this view, so
-- while row-level security is on it can be replaced but not dropped.
create or replace view agui_internal.caller as
select
    coalesce(tenant.low, agui_internal.pool_first_key()) as low,
    coalesce(tenant.high, agui_internal.pool_last_key()) as high
from agui_internal.tenant as tenant
where tenant.role_name = current_user;

comment on view agui_internal.caller is
    'The range of thread keys that the current role may see, in one row; no row: it is mapped to '
    'no scope. The policies of row-level security use it. Functions that write use '
    'agui_internal.own_key, because in them current_user is the owner.';
comment on column agui_internal.caller.low is
    'The smallest key; null: a pool that has not set agui.scope.';
comment on column agui_internal.caller.high is
    'The greatest key; null: a pool that has not set agui.scope.';

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
