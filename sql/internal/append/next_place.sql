create or replace function agui_internal.next_place(thread_key uuid, scope text, thread_id text, run_id text, after_seq bigint)
returns table (run_no int, first_seq bigint, recorded_at timestamptz, hash bytea)
language sql
stable
parallel safe
-- One statement, so it is inlined.
begin atomic
    select run.run_no, latest.first_seq + latest.n, latest.recorded_at, latest.hash
    from (
        select thread.scope, thread.thread_id
        from agui.thread as thread
        where thread.thread_key = next_place.thread_key
        limit 1
    ) as thread
    cross join lateral (
        -- The index of runs in progress may be full of those that have ended since.
        select run.run_no, run.status
        from agui.run as run
        where run.thread_key = next_place.thread_key and run.run_id = next_place.run_id
        limit 1
    ) as run
    cross join lateral (
        select batch.first_seq, batch.n, batch.recorded_at, batch.run_no, batch.hash
        from agui.batch as batch
        where batch.thread_key = next_place.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest
    where run.status = 'running'
        and thread.scope = next_place.scope
        and thread.thread_id = next_place.thread_id
        -- The seqs of a call end before this: else they are too large for one call of many (22003), which the slow way answers alone.
        and latest.first_seq < 9223372036854775807 - 4294967296
        and (
            next_place.after_seq is null
            or next_place.after_seq = latest.first_seq + latest.n - 1 and latest.run_no = run.run_no
        );
end;

comment on function agui_internal.next_place(uuid, text, text, text, bigint) is
    'Where the next events of a run in progress go, the time that theirs must not be before, and the hash of the last link; no row where that takes a closer look: another '
    'run, a call that may be a repeat, or a key that stands for another thread.';

revoke execute on function agui_internal.next_place(uuid, text, text, text, bigint) from public;
