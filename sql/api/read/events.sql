create or replace function agui.events(
    thread_id text,
    run_id    text default null,
    after_seq bigint default 0,
    scope     text default ''
)
returns setof agui.event_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    run  record;
begin
    for run in
        with recursive ancestor as (
            select leaf.*
            union all
            select parent.*
            from ancestor
            join agui.run as parent
                on parent.thread_key = ancestor.thread_key and parent.run_no = ancestor.parent_no and parent.run_no < ancestor.run_no
            where events.run_id is null and ancestor.first_seq > after_seq + 1
        )
        select * from ancestor order by ancestor.run_no
    loop
        return query
        select
            batch.first_seq + element.position - 1,
            run.run_id,
            agui_internal.event_type(element.payload),
            agui_internal.event_time(batch.recorded_at, element.earlier_us),
            element.payload
        from agui.batch as batch
        cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
            as element (payload, earlier_us, position)
        where batch.thread_key = leaf.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq >= greatest(run.first_seq, (
                -- the batch that holds the next event: those before it need not be opened
                select max(holder.first_seq)
                from agui.batch as holder
                where holder.thread_key = leaf.thread_key and holder.first_seq <= after_seq + 1
            ))
            and batch.first_seq <= coalesce(run.last_seq, 9223372036854775807)
            and batch.first_seq + element.position - 1 > after_seq
        order by batch.first_seq, element.position;
    end loop;
end
$$;

comment on function agui.events(text, text, bigint, text) is
    'The events of a run, or, without a run id, of the whole lineage of the head, in order, beginning behind after_seq. '
    'UI001: unknown thread, UI002: unknown run.';

revoke execute on function agui.events(text, text, bigint, text) from public;
