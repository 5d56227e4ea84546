create or replace function agui.checkpoint_lineage(
    thread_id     text,
    checkpoint_id text default null,
    namespace     text default '',
    scope         text default ''
)
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf agui.checkpoint := agui_internal.find_checkpoint(thread_id, checkpoint_id, namespace, scope);
begin
    return query
    with recursive ancestor as (
        select leaf.*
        where leaf.checkpoint_no is not null
        union all
        select parent.*
        from ancestor
        join agui.checkpoint as parent
            on parent.thread_key = ancestor.thread_key
                and parent.checkpoint_no = ancestor.parent_no
                and parent.checkpoint_no < ancestor.checkpoint_no
    )
    select
        ancestor.checkpoint_no, ancestor.namespace, ancestor.checkpoint_id,
        lag(ancestor.checkpoint_id) over (order by ancestor.checkpoint_no),
        ancestor.saved_at, ancestor.document
    from ancestor
    order by ancestor.checkpoint_no;
end
$$;

comment on function agui.checkpoint_lineage(text, text, text, text) is
    'Returns the checkpoints from the root to a checkpoint (null: to the one saved last in the '
    'namespace), root first. '
    'Errors: UI008 no thread, namespace or scope, UI012 another thread has the same key, UI019 '
    'unknown checkpoint (when one is named).';

revoke execute on function agui.checkpoint_lineage(text, text, text, text) from public;
