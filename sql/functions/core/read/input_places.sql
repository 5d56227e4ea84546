create or replace function agui_internal.input_places(thread_key uuid, run_nos int[], through_seqs bigint[])
returns setof agui_internal.input_place
language plpgsql
stable
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    run      record;
    start    record;
begin
    for run in
        select begun.run_no, begun.first_seq, requested.through_seq
        from unnest(run_nos, through_seqs) as requested (run_no, through_seq)
        -- One look-up in an index for each: a join might read all runs of the thread.
        cross join lateral (
            select given.run_no
            from agui.run_input as given
            where given.thread_key = input_places.thread_key and given.run_no = requested.run_no
            limit 1
        ) as given
        cross join lateral (
            select of_input.run_no, of_input.first_seq
            from agui.run as of_input
            where of_input.thread_key = input_places.thread_key and of_input.run_no = given.run_no
            limit 1
        ) as begun
        order by begun.run_no
    loop
        -- It is usually in the first batch, and then no other batch is read.
        select batch.first_seq + element.position - 1 as seq, json_typeof(element.input) is not distinct from 'object' as has_input
        into start
        from agui.batch as batch
        cross join lateral (
            select event.position, event.input
            from rows from (
                json_to_recordset(agui_internal.json_guarded(batch.events)) as (type text, input json)
            ) with ordinality as event (type, input, position)
            where event.type = 'RUN_STARTED' and batch.first_seq + event.position - 1 <= run.through_seq
            order by event.position
            limit 1
        ) as element
        where batch.thread_key = input_places.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.through_seq
            -- Skip batches that cannot contain it. A type written with escapes has \u00 in it.
            and (strpos(batch.events::text, 'RUN_STARTED') > 0 or strpos(batch.events::text, '\u00') > 0)
        order by batch.first_seq
        limit 1;
        if start.seq is null then
            return next (run.run_no, run.first_seq, false)::agui_internal.input_place;
        elsif not start.has_input then
            return next (run.run_no, start.seq, true)::agui_internal.input_place;
        end if;
    end loop;
end
$$;

comment on function agui_internal.input_places(uuid, int[], bigint[]) is
    'Where the inputs stored beside the events of runs take effect, given the seqs up to which '
    'their logs are read. Returns no row for a run that has none, or whose first RUN_STARTED '
    'carries an input, which alone counts.';

revoke execute on function agui_internal.input_places(uuid, int[], bigint[]) from public;
