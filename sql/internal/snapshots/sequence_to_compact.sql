create or replace function agui_internal.sequence_to_compact(
    thread_key uuid,
    run_no     int,
    due_by     timestamptz,
    max_runs   int default null,
    fold_bytes bigint default null
)
returns int[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- As much log as the fold that it continues from is long. Then copying that fold takes a small
    -- part of the time, however long the thread is, and a read that begins before the sequence
    -- folds in proportion to what it returns. For a short fold, the cost of a step counts instead.
    most_bytes constant bigint := greatest(fold_bytes, 16 * 1024);
    -- Folded in some hundred milliseconds.
    max_bytes  constant int := 1024 * 1024;
    max_events constant int := 5000;
    max_length constant int := 200;
begin
    if max_runs < 2 or exists (
        select
        from agui_internal.job_note as note
        where note.job = 'compact' and note.thread_key = sequence_to_compact.thread_key and note.run_no = sequence_to_compact.run_no
    ) then
        return array[run_no];
    end if;
    return (
        with recursive sequence as (
            select null::int as run_no, sequence_to_compact.run_no as next_no, 0 as length, 0::bigint as events, 0::bigint as bytes
            union all
            select run.run_no, only_child.run_no, sequence.length + 1, sequence.events + size.events, sequence.bytes + size.bytes
            from sequence
            join agui.run as run
                on run.thread_key = sequence_to_compact.thread_key and run.run_no = sequence.next_no
            cross join lateral (
                select
                    run.last_seq - run.first_seq + 1 as events,
                    (
                        select coalesce(sum(agui_internal.batch_bytes(batch.events, batch.text_bytes)), 0)
                        from agui.batch as batch
                        where batch.thread_key = run.thread_key
                            and batch.run_no = run.run_no
                            and batch.first_seq between run.first_seq and run.last_seq
                    ) + (
                        select coalesce(sum(octet_length(given.input::text)), 0)
                        from agui.run_input as given
                        where given.thread_key = run.thread_key and given.run_no = run.run_no
                    ) as bytes
            ) as size
            -- A branch begins at the fold of its parent, so that fold is not passed over.
            cross join lateral (
                select case when count(*) = 1 then min(child.run_no) end as run_no
                from agui.run as child
                where child.thread_key = run.thread_key and child.parent_no = run.run_no and child.run_no > run.run_no
            ) as only_child
            where sequence.length = 0
                or sequence.length < least(max_runs, max_length)
                and sequence.events + size.events <= max_events
                and sequence.bytes + size.bytes <= least(most_bytes, max_bytes)
                and run.log_bytes is null
                and run.status <> 'running'
                and run.ended_at <= due_by
                and not exists (
                    select
                    from agui_internal.job_note as note
                    where note.job = 'compact' and note.thread_key = run.thread_key and note.run_no = run.run_no
                )
        )
        select array_agg(sequence.run_no order by sequence.length) from sequence where sequence.length > 0
    );
end
$$;

comment on function agui_internal.sequence_to_compact(uuid, int, timestamptz, int, bigint) is
    'The runs that compaction processes in one step, beginning with run_no, which is due: each is '
    'the only child of the one before, ended by due_by, and without a note of a failed attempt. '
    'Their log is as long as the fold that they continue from (fold_bytes; at least 16 KB, at most '
    '1 MB, 5,000 events and 200 runs; null: 16 KB), except that the first run may be longer. '
    'Snapshots are kept only at the end of such a sequence, so a read folds at most that much more. '
    'max_runs (null: no limit) shortens it.';

revoke execute on function agui_internal.sequence_to_compact(uuid, int, timestamptz, int, bigint) from public;
