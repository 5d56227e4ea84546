create or replace function agui_internal.place_of_thread(thread_key uuid, scope text, thread_id text)
returns json
language plpgsql
volatile
-- So it sees what was committed last, also for a caller whose snapshot is older.
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select json_build_object(
            'scope', scope, 'threadId', thread_id,
            'node', coalesce(moved.node, placed.node), 'bucket', placed.bucket, 'epoch', placed.epoch, 'ofThread', moved.node is not null
        )
        from agui_internal.bucket as hashed
        join agui_internal.bucket as placed
            on placed.bucket = case
                when hashed.has_pins then agui_internal.bucket_of_thread(place_of_thread.thread_key)
                else hashed.bucket
            end
        left join agui_internal.moved_thread as moved
            on moved.thread_key = place_of_thread.thread_key
        where hashed.bucket = agui_internal.bucket_of(place_of_thread.thread_key)
    );
end
$$;

comment on function agui_internal.place_of_thread(uuid, text, text) is
    'Where a thread is, for DETAIL of UI027: node, and the bucket with its epoch. ofThread: that holds '
    'for this thread alone, and not for its bucket.';

revoke execute on function agui_internal.place_of_thread(uuid, text, text) from public;
