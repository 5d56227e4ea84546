create or replace function agui_internal.session_lock_id(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
-- The seed is "sess" in ASCII. Appends take another lock (agui_internal.thread_lock_id) and are not
-- blocked.
return uuid_hash_extended(thread_key, x'73657373'::bigint);

comment on function agui_internal.session_lock_id(uuid) is
    'The transaction-level advisory lock for saving the whole session state of a thread, so that '
    'two such calls do not mix their keys.';

revoke execute on function agui_internal.session_lock_id(uuid) from public;
