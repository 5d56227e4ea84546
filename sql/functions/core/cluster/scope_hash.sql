create or replace function agui_internal.scope_hash(thread_key uuid)
returns bytea
language sql
immutable
strict
parallel safe
return substring(uuid_send(thread_key) for 8);

comment on function agui_internal.scope_hash(uuid) is
    'The first half of the key of a thread, which hashes its scope.';

revoke execute on function agui_internal.scope_hash(uuid) from public;
