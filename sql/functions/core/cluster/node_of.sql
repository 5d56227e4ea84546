create or replace function agui_internal.node_of(thread_key uuid)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        (select moved.node from agui_internal.moved_thread as moved where moved.thread_key = node_of.thread_key),
        (select placed.node from agui_internal.bucket as placed where placed.bucket = agui_internal.bucket_of(node_of.thread_key))
    );
end
$$;

comment on function agui_internal.node_of(uuid) is
    'The node of a thread, which need not exist, as far as the snapshot of the caller sees.';

revoke execute on function agui_internal.node_of(uuid) from public;
