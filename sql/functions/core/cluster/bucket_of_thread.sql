create or replace function agui_internal.bucket_of_thread(thread_key uuid)
returns int
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        (
            select pinned.bucket
            from agui_internal.pinned_scope as pinned
            where pinned.scope_hash = agui_internal.scope_hash(bucket_of_thread.thread_key)
        ),
        agui_internal.bucket_of(bucket_of_thread.thread_key)
    );
end
$$;

comment on function agui_internal.bucket_of_thread(uuid) is
    'The bucket of a thread: the one that its scope is pinned to, or else agui_internal.bucket_of.';

revoke execute on function agui_internal.bucket_of_thread(uuid) from public;
