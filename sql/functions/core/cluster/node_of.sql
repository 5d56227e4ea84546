create or replace function agui_internal.node_of(thread_key uuid)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    place record;
begin
    select coalesce(moved.node, placed.node) as node, placed.has_pins and moved.node is null as may_be_pinned into place
    from agui_internal.bucket as placed
    left join agui_internal.moved_thread as moved
        on moved.thread_key = node_of.thread_key
    where placed.bucket = agui_internal.bucket_of(node_of.thread_key);
    if place.may_be_pinned then
        return (
            select placed.node
            from agui_internal.bucket as placed
            where placed.bucket = agui_internal.bucket_of_thread(node_of.thread_key)
        );
    end if;
    return place.node;
end
$$;

comment on function agui_internal.node_of(uuid) is
    'The node of a thread, which need not exist, as far as the snapshot of the caller sees.';

revoke execute on function agui_internal.node_of(uuid) from public;
