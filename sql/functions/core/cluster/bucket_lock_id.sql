create or replace function agui_internal.bucket_lock_id(bucket int)
returns bigint
language sql
immutable
strict
parallel safe
-- As in agui_internal.thread_lock_id, with the seed "buck".
return hashint4extended(bucket, x'6275636b'::bigint);

comment on function agui_internal.bucket_lock_id(int) is
    'The advisory lock that writers to threads of a bucket share until their transaction ends, and '
    'that a move takes alone for a moment.';

revoke execute on function agui_internal.bucket_lock_id(int) from public;
