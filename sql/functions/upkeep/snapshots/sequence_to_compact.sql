create or replace function agui_internal.sequence_to_compact(
    thread_key uuid,
    run_no     int,
    due_by     timestamptz,
    max_runs   int default null,
    fold_bytes bigint default null,
    out run_nos     int[],
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
    -- As much log as the fold that it continues from is long. Then copying that fold takes a small
    -- part of the time, however long the thread is, and a read of a run in the sequence folds in
    -- proportion to what it returns. For a short fold, the cost of a step counts instead.
    most_bytes constant bigint := greatest(fold_bytes, 16 * 1024);
    -- Folded in some hundred milliseconds.
    max_bytes  constant int := 1024 * 1024;
    max_events constant int := 5000;
    max_length constant int := 500;
    run        record;
    events     bigint := 0;
begin
    run_nos := '{}';
    bytes := 0;
    loop
        select
            due.run_no,
            due.last_seq - due.first_seq + 1 as events,
            (
                select coalesce(sum(coalesce(batch.text_bytes, pg_column_size(batch.events))), 0)
                from agui.batch as batch
                where batch.thread_key = due.thread_key
                    and batch.run_no = due.run_no
                    and batch.first_seq between due.first_seq and due.last_seq
            ) + (
                select coalesce(sum(coalesce(given.part_bytes, given.bytes, octet_length(given.input::text))), 0)
                from agui.run_input as given
                where given.thread_key = due.thread_key and given.run_no = due.run_no
            ) as bytes,
            -- Not as conditions, which could make the planner choose the index of the queue.
            due.log_bytes is null and due.status <> 'running' and due.ended_at <= due_by as is_due,
            exists (
                select
                from agui_internal.job_note as note
                where note.job = 'compact' and note.thread_key = due.thread_key and note.run_no = due.run_no
            ) as is_noted,
            -- A branch begins with the fold of its parent, so that run is the end of a sequence.
            (
                select case when count(*) = 1 then min(child.run_no) end
                from agui.run as child
                where child.thread_key = due.thread_key and child.parent_no = due.run_no
            ) as child_no,
            -- Not "max", for which a plan may read all of them.
            (select last.run_no from agui.run as last where last.thread_key = due.thread_key order by last.run_no desc limit 1) as last_no
        into run
        from agui.run as due
        where due.thread_key = sequence_to_compact.thread_key and due.run_no = sequence_to_compact.run_no;

        events := events + run.events;
        exit when run_nos <> '{}'
            and (
                run.is_due and not run.is_noted and events <= max_events and bytes + run.bytes <= least(most_bytes, max_bytes)
            ) is not true;
        run_nos := run_nos || run_no;
        bytes := bytes + run.bytes;
        is_noted := run.is_noted;
        ends_thread := run.last_no = run.run_no;
        exit when run.is_noted or cardinality(run_nos) >= least(max_runs, max_length) or (run.child_no > run_no) is not true;
        run_no := run.child_no;
    end loop;
end
$$;

comment on function agui_internal.sequence_to_compact(uuid, int, timestamptz, int, bigint) is
    'The runs that compaction processes in one step, beginning with run_no, which is due: each is '
    'the only child of the one before, ended by due_by, and without a note of a failed attempt. '
    'Their log is as long as the fold that they continue from (fold_bytes; at least 16 KB, at most '
    '1 MB, 5,000 events and 500 runs; null: 16 KB), except that the first run may be longer. '
    'Snapshots are kept only at the end of such a sequence, so a read of a run in it folds at most '
    'that much more. max_runs (null: no limit) shortens it. bytes: the size of their log. is_noted: '
    'it is one run, with a note. ends_thread: the thread has no later run.';

revoke execute on function agui_internal.sequence_to_compact(uuid, int, timestamptz, int, bigint) from public;
