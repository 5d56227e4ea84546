create or replace function agui_internal.next_to_compact(thread_key uuid, due_by timestamptz, after_no int default 0)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting int[];
    next_no int;
    waits_for_parent boolean;
begin
    -- First runs without a failed attempt, then those that may be retried. Before both, attempt 0
    -- searches after the run after_no, which avoids reading all runs that are done.
    for attempt in case when after_no > 0 then 0 else 1 end .. 2 loop
        waiting := agui_internal.runs_in_quarantine(thread_key, with_noted => attempt < 2);
        -- Parents before children. A parent has ended before its children, so it is due when they
        -- are.
        select
            run.run_no,
            -- Not "exists", for which the planner may hash the whole table.
            coalesce((
                select parent.log_bytes is null
                from agui.run as parent
                where parent.thread_key = run.thread_key and parent.run_no = run.parent_no
            ), false)
        into next_no, waits_for_parent
        from agui.run as run
        where run.thread_key = next_to_compact.thread_key
            and run.run_no > case when attempt = 0 then after_no else 0 end
            and run.log_bytes is null
            and run.status <> 'running'
            and run.ended_at <= due_by
            and run.run_no <> all (waiting)
        order by run.run_no
        limit 1;
        -- A parent that ended late, or that something was appended to, may be before after_no.
        exit when case when attempt = 0 then not waits_for_parent else found or waiting = '{}' end;
    end loop;
    return next_no;
end
$$;

comment on function agui_internal.next_to_compact(uuid, timestamptz, int) is
    'The number of the next run of a thread that compaction has to process, one that ended by '
    'due_by; null: there is none. after_no is the last run done (0: none): runs after it come '
    'first. Runs in quarantine, and those that continue from them, are skipped.';

revoke execute on function agui_internal.next_to_compact(uuid, timestamptz, int) from public;
