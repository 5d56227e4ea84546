create or replace function agui_internal.next_to_compact(thread_key uuid, due_by timestamptz)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting int[] := '{}';
    next_no int;
begin
    -- First runs without a failed attempt, then those that may be retried.
    for attempt in 1 .. 2 loop
        waiting := agui_internal.runs_in_quarantine(thread_key, with_noted => attempt = 1);
        -- Parents before children. A parent has ended before its children, so it is due when they
        -- are.
        select run.run_no into next_no
        from agui.run as run
        where run.thread_key = next_to_compact.thread_key
            and run.log_bytes is null
            and run.status <> 'running'
            and run.ended_at <= due_by
            and run.run_no <> all (waiting)
        order by run.run_no
        limit 1;
        exit when found or waiting = '{}';
    end loop;
    return next_no;
end
$$;

comment on function agui_internal.next_to_compact(uuid, timestamptz) is
    'The number of the next run of a thread that compaction has to process, one that ended by '
    'due_by; null: there is none. Runs in quarantine, and those that continue from them, are '
    'skipped.';

revoke execute on function agui_internal.next_to_compact(uuid, timestamptz) from public;
