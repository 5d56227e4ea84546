create or replace function agui_internal.first_key(scope text)
returns uuid
language sql
immutable
strict
parallel safe
-- The part of the scope, as in agui.thread_key, without the part of the thread.
return encode(substring(sha256(replace(scope, '\', '\\')::bytea) for 8) || '\x0000000000000000'::bytea, 'hex')::uuid;

comment on function agui_internal.first_key(text) is
    'The smallest possible key of a thread of a scope. The threads of a scope are one range of '
    'keys, up to agui_internal.last_key.';

revoke execute on function agui_internal.first_key(text) from public;
