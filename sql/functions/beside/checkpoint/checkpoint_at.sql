create or replace function agui_internal.checkpoint_at(run agui.run, namespace text)
returns agui.checkpoint
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select checkpoint.*
    from agui_internal.ancestors(run) as ancestor
    join agui.checkpoint as checkpoint
        on checkpoint.thread_key = ancestor.thread_key
            and checkpoint.namespace = checkpoint_at.namespace
            and checkpoint.run_id = ancestor.run_id
            and checkpoint.document is not null
    order by ancestor.run_no desc, checkpoint.checkpoint_no desc
    limit 1
$$;

comment on function agui_internal.checkpoint_at(agui.run, text) is
    'The checkpoint of a namespace that was saved last at a run, or else at the nearest run before it '
    'on its lineage; null if there is none.';

revoke execute on function agui_internal.checkpoint_at(agui.run, text) from public;
