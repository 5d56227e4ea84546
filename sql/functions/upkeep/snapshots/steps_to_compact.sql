create or replace function agui_internal.steps_to_compact(
    thread_key uuid,
    run_no     int,
    place      timestamptz,
    due_by     timestamptz,
    max_runs   int,
    fold_bytes bigint,
    max_steps  int,
    max_bytes  bigint,
    out steps       agui_internal.compaction_step[],
    out runs        int,
    out bytes       bigint,
    out is_noted    boolean,
    out ends_thread boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    part record;
begin
    steps := '{}';
    runs := 0;
    bytes := 0;
    loop
        select * into part from agui_internal.sequence_to_compact(thread_key, run_no, due_by, max_runs - runs, fold_bytes);
        exit when steps <> '{}' and (part.is_noted or bytes + part.bytes > max_bytes);
        steps := steps || (thread_key, part.run_nos, place, null)::agui_internal.compaction_step;
        runs := runs + cardinality(part.run_nos);
        bytes := bytes + part.bytes;
        is_noted := part.is_noted;
        ends_thread := part.ends_thread;
        exit when is_noted or ends_thread or cardinality(steps) >= max_steps or runs >= max_runs;

        -- A branch beside it, which waits for no step of this transaction.
        run_no := part.run_nos[cardinality(part.run_nos)] + 1;
        perform
        from agui.run as due
        where due.thread_key = steps_to_compact.thread_key and due.run_no = steps_to_compact.run_no
            and due.log_bytes is null and due.status <> 'running' and due.ended_at <= due_by
            -- Not "exists", for which the planner may hash the whole table.
            and coalesce((
                select parent.log_bytes is not null
                from agui.run as parent
                where parent.thread_key = due.thread_key and parent.run_no = due.parent_no
            ), true);
        exit when not found;
    end loop;
end
$$;

comment on function agui_internal.steps_to_compact(uuid, int, timestamptz, timestamptz, int, bigint, int, bigint) is
    'What compaction does of a thread in one transaction, beginning with the run run_no, which is '
    'due: a sequence (agui_internal.sequence_to_compact), and the sequences of the runs that begin '
    'next, if they continue from runs that are compacted already. Those are up to max_steps, of '
    'max_bytes and max_runs (null: no limit) together. A run with a note (is_noted) comes alone. '
    'runs, bytes: how many runs they are, and the size of their log. ends_thread: the thread has no '
    'later run.';

revoke execute on function agui_internal.steps_to_compact(uuid, int, timestamptz, timestamptz, int, bigint, int, bigint) from public;
