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
rows 100
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    most_steps bigint;
    leaf agui.checkpoint := agui_internal.find_checkpoint(thread_id, checkpoint_id, namespace, scope);
begin
    -- A child may have been stored before its parent, so numbers do not rule out a cycle.
    most_steps := (select max(checkpoint.checkpoint_no) from agui.checkpoint as checkpoint where checkpoint.thread_key = leaf.thread_key);
    return query
    with recursive ancestor (checkpoint, depth) as (
        select leaf, 0
        where leaf.checkpoint_no is not null
        union all
        select parent, ancestor.depth + 1
        from ancestor
        join agui.checkpoint as parent
            on parent.thread_key = (ancestor.checkpoint).thread_key and parent.checkpoint_no = (ancestor.checkpoint).parent_no
        where parent.document is not null and ancestor.depth < most_steps
    )
    select shown.*
    from (
        select distinct on ((ancestor.checkpoint).checkpoint_no) ancestor.*
        from ancestor
        order by (ancestor.checkpoint).checkpoint_no, ancestor.depth
    ) as ancestor
    cross join agui_internal.show_checkpoint(ancestor.checkpoint) as shown
    order by ancestor.depth desc;
end
$$;

comment on function agui.checkpoint_lineage(text, text, text, text) is
    'Returns the checkpoints from the root to a checkpoint (null: to the one saved last in the '
    'namespace), root first. '
    'Errors: UI008 no thread, namespace or scope, UI012 another thread has the same key, UI019 '
    'unknown checkpoint (when one is named).';

revoke execute on function agui.checkpoint_lineage(text, text, text, text) from public;
