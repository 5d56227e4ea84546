create or replace function agui.events(
    thread_id text,
    run_id    text default null,
    after_seq bigint default 0,
    lineage   boolean default true,
    scope     text default ''
)
returns setof agui.event_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf   agui.run := agui_internal.find_run(thread_id, run_id, scope);
    behind constant bigint := coalesce(after_seq, 0);
    run    record;
begin
    if lineage is false then
        leaf.parent_no := null;
    end if;
    for run in
        select ancestor.* from agui_internal.ancestors(leaf, behind) as ancestor order by ancestor.run_no
    loop
        return query
        select
            batch.first_seq + element.position - 1,
            run.run_id,
            agui_internal.event_type(element.payload),
            agui_internal.event_time(batch.recorded_at, element.earlier_us),
            element.payload
        from agui_internal.batches_behind(leaf.thread_key, behind) as batch
        cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
            as element (payload, earlier_us, position)
        where batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
            and batch.first_seq + element.position - 1 > behind
        order by batch.first_seq, element.position;
    end loop;
end
$$;

comment on function agui.events(text, text, bigint, boolean, text) is
    'Returns the events of the lineage of a run (null: the head) after after_seq, in order. '
    'lineage => false: only those of the run itself. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.events(text, text, bigint, boolean, text) from public;
