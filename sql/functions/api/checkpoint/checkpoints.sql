create or replace function agui.checkpoints(thread_id text, namespace text default null, scope text default '')
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.checked_thread_key(thread_id, scope);
begin
    return query
    select shown.*
    from agui.checkpoint as checkpoint
    cross join agui_internal.show_checkpoint(checkpoint) as shown
    where checkpoint.thread_key = key
        and (checkpoints.namespace is null or checkpoint.namespace = checkpoints.namespace)
        and checkpoint.document is not null
    order by checkpoint.checkpoint_no;
end
$$;

comment on function agui.checkpoints(text, text, text) is
    'Returns the checkpoints of a thread, in one namespace or (null) in all, in the order of '
    'their numbers. Parents precede their children, unless agui.put_checkpoint stored the child first. '
    'Returns no row if the thread has none. '
    'Errors: UI012 another thread has the same key.';

revoke execute on function agui.checkpoints(text, text, text) from public;
