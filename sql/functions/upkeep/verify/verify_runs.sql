create or replace function agui_internal.verify_runs(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with log as (
            select
                batch.run_no,
                min(batch.first_seq) as first_seq,
                max(batch.first_seq + batch.n - 1) as last_seq,
                sum(batch.n) as n
            from agui.batch as batch
            where batch.thread_key = verify_runs.thread_key
            group by batch.run_no
        ),
        life_event as materialized (
            select * from agui_internal.life_cycle(verify_runs.thread_key)
        ),
        start as (
            select
                life_event.*,
                row_number() over (partition by life_event.run_no order by life_event.place) as nth
            from life_event
            where life_event.type = 'RUN_STARTED'
        ),
        foreign_start as (
            select distinct on (start.run_no) start.*
            from start
            join agui.run as run
                on run.thread_key = verify_runs.thread_key and run.run_no = start.run_no
            where start.run_id <> replace(run.run_id, '\', '\u005c')
            order by start.run_no, start.place
        ),
        stray_start as (
            select distinct on (start.run_no) start.*
            from start
            join agui.thread as thread on thread.thread_key = verify_runs.thread_key
            where start.thread_id <> replace(thread.thread_id, '\', '\u005c')
            order by start.run_no, start.place
        ),
        -- Of the events that end the run: the first one, the last one, and the first after which something
        -- comes. As in the official client, RUN_ERROR may directly follow RUN_FINISHED.
        ending as (
            select
                closing.run_no,
                (array_agg(closing.type order by closing.place desc))[1] as type,
                (array_agg(closing.status order by closing.place desc))[1] as status,
                (array_agg(closing.seq order by closing.place desc))[1] as seq,
                max(closing.place) as place,
                min(closing.place) filter (where not closing.is_taken_back) as first_place,
                (array_agg(closing.type order by closing.place) filter (where not closing.is_taken_back))[1] as first_type,
                (array_agg(closing.seq order by closing.place) filter (where not closing.is_taken_back))[1] as first_seq
            from (
                select
                    life_event.*,
                    coalesce(
                        life_event.type = 'RUN_FINISHED'
                            and lead(life_event.type) over in_order = 'RUN_ERROR'
                            and lead(life_event.place) over in_order = life_event.place + 1,
                        false
                    ) as is_taken_back
                from life_event
                where life_event.type <> 'RUN_STARTED' and not life_event.is_late
                window in_order as (partition by life_event.run_no order by life_event.place)
            ) as closing
            group by closing.run_no
        )
        select run.run_id, problem.text, problem.severity
        from agui.run as run
        -- Whether its status may be by older rules.
        cross join (select agui_internal.waits_for_rules(verify_runs.thread_key) as is_older) as by_rules
        left join log on log.run_no = run.run_no
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        left join life_event as opening
            on opening.run_no = run.run_no and opening.place = 1 and opening.type in ('RUN_STARTED', 'RUN_ERROR')
        left join start as first_start on first_start.run_no = run.run_no and first_start.nth = 1
        left join start as restart on restart.run_no = run.run_no and restart.nth = 2
        left join foreign_start on foreign_start.run_no = run.run_no
        left join stray_start on stray_start.run_no = run.run_no
        left join ending on ending.run_no = run.run_no
        left join agui.run_input as stored
            on stored.thread_key = run.thread_key and stored.run_no = run.run_no
        cross join lateral (
            -- agui_internal.verify_inputs reports an input that cannot be read as it was. One in parts was an
            -- object; it is joined only to be compared.
            select case
                when stored.input is null and first_start.input is null then null
                when coalesce(agui_internal.stored_input_hash(run.thread_key, run.run_no) = stored.hash, stored.input is not null) then (
                    select given.input
                    from agui.input as given
                    where given.thread_key = run.thread_key and given.run_no = run.run_no
                )
            end as input
            offset 0  -- computed once
        ) as beside
        -- The parent that the first event names. Later events never change it.
        cross join lateral (
            select
                case when opening.type = 'RUN_STARTED' then opening.parent_run_id end as named_at_start,
                coalesce(replace(parent.run_id, '\', '\u005c'), '') as stored
        ) as parent_of
        cross join lateral (
            select case
                when run.cut_off_reason is not null and ending.type = 'RUN_ERROR' then 'cut_off'
                else coalesce(ending.status, 'running')
            end as status
        ) as by_log
        cross join lateral (
            values
                ('damage', log.n is null, 'the run has no events'),
                ('damage', log.first_seq <> run.first_seq,
                    format('the run should begin at seq %s, its first event is at seq %s', run.first_seq, log.first_seq)),
                ('damage', run.status <> 'running' and log.last_seq <> run.last_seq,
                    format('the run should end at seq %s, its last event is at seq %s', run.last_seq, log.last_seq)),
                ('damage', run.status <> 'running' and run.last_seq is null, 'the run has ended, its row does not say where'),
                ('damage', run.status = 'running' and run.last_seq is not null,
                    format('the run is in progress, its row says that it ended at seq %s', run.last_seq)),
                -- If it counts fewer, compaction can count them: see agui_internal.verify_references.
                ('damage', log.n < run.n,
                    format('the run''s row counts %s events, its log has %s', run.n, log.n)),
                ('damage', foreign_start.seq is not null,
                    format('the run''s RUN_STARTED names another run, "%s"', foreign_start.run_id)),
                ('damage', log.n is not null and run.status <> by_log.status and not by_rules.is_older,
                    format('the run is marked as %s, by its log it is %s', run.status, by_log.status)),
                ('damage', run.end_seq <> ending.seq and not by_rules.is_older,
                    format('the run''s last end is at seq %s, its row says %s', ending.seq, run.end_seq)),
                ('damage', run.cut_off_reason is not null and (ending.type is distinct from 'RUN_ERROR' or ending.place < log.n),
                    'the run''s row says that it was cut off, its log has no RUN_ERROR that ends it'),
                -- Unless its writer gave the parent, it is the one that RUN_STARTED names, else the run
                -- begun last.
                ('damage', not run.parent_given and parent_of.named_at_start <> parent_of.stored,
                    format('the run''s RUN_STARTED names the parent "%s", its row %s',
                        parent_of.named_at_start, coalesce('"' || parent.run_id || '"', 'none'))),
                ('damage', not run.parent_given and log.n is not null and parent_of.named_at_start is null
                        and run.parent_no is distinct from nullif(run.run_no - 1, 0),
                    format('the run''s %s names no parent, so it %s, its row says %s',
                        coalesce(opening.type, 'first event'), case when run.run_no = 1 then 'is a root' else 'follows the run before it' end,
                        coalesce('"' || parent.run_id || '"', 'none'))),
                ('damage', json_typeof(beside.input) <> 'object',
                    format('the input beside the events of the run is a JSON %s, not an object', json_typeof(beside.input))),

                ('note', log.n is not null and opening.type is null, 'the run does not begin with RUN_STARTED'),
                ('note', restart.seq is not null,
                    format('the run has a second RUN_STARTED, at seq %s', restart.seq)),
                ('note', log.n > ending.first_place,
                    format('the run goes on after the %s at seq %s that ended it, to seq %s', ending.first_type, ending.first_seq, log.last_seq)),
                ('note', stray_start.seq is not null,
                    format('the RUN_STARTED at seq %s names another thread, "%s"', stray_start.seq, stray_start.thread_id)),
                ('note', (run.parent_given or first_start.place > 1) and first_start.parent_run_id <> parent_of.stored,
                    format('the RUN_STARTED at seq %s names the parent "%s", the run %s',
                        first_start.seq, first_start.parent_run_id, coalesce('follows "' || parent.run_id || '"', 'is a root'))),
                ('note', first_start.input is not null and beside.input is not null
                        and not agui_internal.json_equal(agui_internal.json_unguard(first_start.input::text), beside.input::text),
                    format('the RUN_STARTED at seq %s carries another input than is stored beside the events: its own counts', first_start.seq))
        ) as problem (severity, is_there, text)
        where run.thread_key = verify_runs.thread_key
            and problem.is_there
        order by run.run_no;
end
$$;

comment on function agui_internal.verify_runs(uuid) is
    'The differences between the rows of the runs of a thread and its log: bounds, the events that '
    'begin and end runs, the parents that they name. Also notes: a run that does not begin or end '
    'as the protocol requires, or a RUN_STARTED that differs from what its writer gave.';

revoke execute on function agui_internal.verify_runs(uuid) from public;
