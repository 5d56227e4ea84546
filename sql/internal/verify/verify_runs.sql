create or replace function agui_internal.verify_runs(thread_key uuid)
returns setof agui.verify_row
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
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
    restart as (
        select life_event.run_no, min(life_event.seq) as seq
        from life_event
        where life_event.type = 'RUN_STARTED' and life_event.place > 1
        group by life_event.run_no
    ),
    -- The event that ended the run: the first RUN_FINISHED or RUN_ERROR. As clients have it, RUN_ERROR may follow RUN_FINISHED at once.
    ending as (
        select distinct on (closing.run_no) closing.*
        from (
            select
                life_event.*,
                life_event.type = 'RUN_FINISHED'
                    and lead(life_event.type) over in_order = 'RUN_ERROR'
                    and lead(life_event.place) over in_order = life_event.place + 1 as is_taken_back
            from life_event
            where life_event.type <> 'RUN_STARTED'
            window in_order as (partition by life_event.run_no order by life_event.place)
        ) as closing
        where not coalesce(closing.is_taken_back, false)
        order by closing.run_no, closing.place
    )
    select run.run_id, problem.text
    from agui.run as run
    left join log on log.run_no = run.run_no
    left join agui.run as parent
        on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
    left join life_event as opening
        on opening.run_no = run.run_no and opening.place = 1 and opening.type in ('RUN_STARTED', 'RUN_ERROR')
    left join restart on restart.run_no = run.run_no
    left join ending on ending.run_no = run.run_no
    cross join lateral (
        values
            (log.n is null, 'the run has no events'),
            (log.first_seq <> run.first_seq,
                format('the run should begin at seq %s, its first event is at seq %s', run.first_seq, log.first_seq)),
            (run.status <> 'running' and log.last_seq <> run.last_seq,
                format('the run should end at seq %s, its last event is at seq %s', run.last_seq, log.last_seq)),
            (run.status <> 'running' and run.last_seq is null, 'the run has ended, its row does not say where'),
            (run.status = 'running' and run.last_seq is not null,
                format('the run is in progress, its row says that it ended at seq %s', run.last_seq)),
            (log.n <> run.n,
                format('the run''s row counts %s events, its log has %s', run.n, log.n)),
            (log.n is not null and opening.type is null, 'the run does not begin with RUN_STARTED'),
            (opening.type = 'RUN_STARTED' and opening.run_id <> replace(run.run_id, '\', '\u005c'),
                format('the run''s RUN_STARTED names another run, "%s"', opening.run_id)),
            (restart.seq is not null,
                format('the run has a second RUN_STARTED, at seq %s', restart.seq)),
            (log.n > ending.place,
                format('the run goes on after the %s at seq %s that ended it, to seq %s', ending.type, ending.seq, log.last_seq)),
            (log.n is not null and run.status <> agui_internal.status_after(ending.type),
                format('the run is marked as %s, by its log it is %s', run.status, agui_internal.status_after(ending.type))),
            (run.cut_off_reason is not null and ending.type is distinct from 'RUN_ERROR',
                'the run''s row says that it was cut off, its log has no RUN_ERROR that ends it'),
            -- agui.append has parentRunId name a run, and a run without it follow the one begun last.
            (opening.parent_run_id <> coalesce(replace(parent.run_id, '\', '\u005c'), ''),
                format('the run''s %s names the parent "%s", its row %s',
                    opening.type, opening.parent_run_id, coalesce('"' || parent.run_id || '"', 'none'))),
            (opening.type is not null and opening.parent_run_id is null and run.parent_no is distinct from nullif(run.run_no - 1, 0),
                format('the run''s %s names no parent, so it %s, its row says %s',
                    opening.type, case when run.run_no = 1 then 'is a root' else 'follows the run before it' end,
                    coalesce('"' || parent.run_id || '"', 'none')))
    ) as problem (is_there, text)
    where run.thread_key = verify_runs.thread_key
        and problem.is_there
    order by run.run_no
$$;

comment on function agui_internal.verify_runs(uuid) is
    'Where the rows of a thread''s runs and its log disagree: bounds, the events that begin and end runs, the parents that they name.';

revoke execute on function agui_internal.verify_runs(uuid) from public;
