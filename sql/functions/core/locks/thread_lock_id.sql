create or replace function agui_internal.thread_lock_id(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed ("agui" in ASCII) separates the locks of pgagui from other 64-bit advisory locks in the
-- database.
return uuid_hash_extended(thread_key, x'61677569'::bigint);

comment on function agui_internal.thread_lock_id(uuid) is
    'The transaction-level advisory lock that every writer of the log of a thread takes first.';

revoke execute on function agui_internal.thread_lock_id(uuid) from public;
