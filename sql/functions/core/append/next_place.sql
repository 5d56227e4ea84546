create or replace function agui_internal.next_place(thread_key uuid, scope text, thread_id text, run_id text, after_seq bigint)
returns table (run_no int, first_seq bigint, recorded_at timestamptz, hash bytea)
language sql
stable
parallel safe
-- A single statement, so that it is inlined.
begin atomic
    select run.run_no, latest.first_seq + latest.n, latest.recorded_at, latest.hash
    from (
        select thread.scope, thread.thread_id
        from agui.thread as thread
        where thread.thread_key = next_place.thread_key
        limit 1
    ) as thread
    cross join lateral (
        -- Not by the index of runs in progress: it may be full of entries of runs that have ended
        -- since.
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
        -- The seqs of a call must end below this value. A larger one would fail a call of
        -- agui.append_many as a whole (22003); the slow path fails only the call at fault.
        and latest.first_seq < 9223372036854775807 - 4294967296
        and (
            next_place.after_seq is null
            or next_place.after_seq = latest.first_seq + latest.n - 1 and latest.run_no = run.run_no
        );
end;

comment on function agui_internal.next_place(uuid, text, text, text, bigint) is
    'Returns the position of the next events of a run in progress, the time that they must not '
    'precede, and the hash of the last link. Returns no row if further checks are needed: another '
    'run, a possible repeat, or a key that belongs to another thread.';

revoke execute on function agui_internal.next_place(uuid, text, text, text, bigint) from public;
