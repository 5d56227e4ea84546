create or replace function agui_internal.session_lock_id(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed is "sess" in ASCII: appends take another lock (agui_internal.thread_lock_id), and go on meanwhile.
return uuid_hash_extended(thread_key, x'73657373'::bigint);

comment on function agui_internal.session_lock_id(uuid) is
    'The transaction-level advisory lock that whoever saves a whole session of a thread takes, so that it is not saved in between the keys of another.';

revoke execute on function agui_internal.session_lock_id(uuid) from public;
