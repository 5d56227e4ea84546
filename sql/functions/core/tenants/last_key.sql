create or replace function agui_internal.last_key(scope text)
returns uuid
language sql
immutable
strict
parallel safe
return encode(substring(sha256(replace(scope, '\', '\\')::bytea) for 8) || '\xffffffffffffffff'::bytea, 'hex')::uuid;

comment on function agui_internal.last_key(text) is
    'The greatest possible key of a thread of a scope.';

revoke execute on function agui_internal.last_key(text) from public;
