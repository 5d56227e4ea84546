create or replace function agui_internal.thread_lock_id(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed ("agui" in ASCII) keeps the locks of pgagui apart from other users of 64-bit advisory locks in the database.
return uuid_hash_extended(thread_key, x'61677569'::bigint);

comment on function agui_internal.thread_lock_id(uuid) is
    'The transaction-level advisory lock that whoever writes to a thread''s log takes first.';

revoke execute on function agui_internal.thread_lock_id(uuid) from public;
