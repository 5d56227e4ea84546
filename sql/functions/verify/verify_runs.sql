create or replace function agui.verify_runs(thread_key uuid)
returns setof agui.problem
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with bounds as (
        select batch.run_no, min(batch.first_seq) as first_seq, max(batch.first_seq + batch.n - 1) as last_seq
        from agui.batch as batch
        where batch.thread_key = verify_runs.thread_key
        group by batch.run_no
    ),
    run as (
        select
            run.run_id, run.run_no, run.status,
            run.first_seq, run.last_seq,
            bounds.first_seq as log_first_seq, bounds.last_seq as log_last_seq,
            parent.run_id as parent_run_id, parent.last_seq as parent_last_seq,
            opening.type, opening.run_id as started_run_id
        from agui.run as run
        left join bounds on bounds.run_no = run.run_no
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        left join agui.batch as first_batch
            on first_batch.thread_key = run.thread_key and first_batch.first_seq = run.first_seq
        left join lateral (
            select guarded.event ->> 'type', guarded.event ->> 'runId'
            from json_array_elements(first_batch.events) as element (event)
            cross join lateral (select agui.json_guard(element.event::text)::json) as guarded (event)
            limit 1
        ) as opening (type, run_id) on true
        where run.thread_key = verify_runs.thread_key
    )
    select run.run_id, problem.text
    from run
    cross join lateral (
        values
            (run.log_first_seq is null, 'the run has no events'),
            (run.log_first_seq <> run.first_seq,
                format('the run should begin at seq %s, its first event is at seq %s', run.first_seq, run.log_first_seq)),
            (run.status <> 'running' and run.log_last_seq <> run.last_seq,
                format('the run should end at seq %s, its last event is at seq %s', run.last_seq, run.log_last_seq)),
            (run.type is distinct from 'RUN_STARTED' and run.type is distinct from 'RUN_ERROR',
                format('the run begins with %s instead of RUN_STARTED', coalesce(run.type, 'nothing'))),
            (run.type = 'RUN_STARTED' and run.started_run_id <> replace(run.run_id, '\', '\u005c'),
                format('the run''s RUN_STARTED names another run, "%s"', run.started_run_id)),
            (run.parent_run_id is not null and (run.parent_last_seq is null or run.parent_last_seq >= run.first_seq),
                format('the run began before its parent "%s" had ended', run.parent_run_id))
    ) as problem (is_there, text)
    where problem.is_there
    order by run.run_no
$$;

comment on function agui.verify_runs(uuid) is 'What is wrong with the runs of a thread: bounds, first event, parents.';

revoke execute on function agui.verify_runs(uuid) from public;
