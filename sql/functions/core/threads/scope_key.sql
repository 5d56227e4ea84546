create or replace function agui_internal.scope_key(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
return ('x' || left(replace(thread_key::text, '-', ''), 16))::bit(64)::bigint;

comment on function agui_internal.scope_key(uuid) is
    'The first 64 bits of a thread key as a number: the hash of its scope, which the indexes of '
    'agui.thread_activity use.';

revoke execute on function agui_internal.scope_key(uuid) from public;
