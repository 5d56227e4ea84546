create or replace function agui_internal.next_place(thread_key uuid, run_id text, after_seq bigint)
returns table (run_no int, first_seq bigint, recorded_at timestamptz)
language sql
stable
parallel safe
-- One statement, so it is inlined.
begin atomic
    select run.run_no, latest.first_seq + latest.n, latest.recorded_at
    from (
        select run.run_no
        from agui.run as run
        where run.thread_key = next_place.thread_key and run.run_id = next_place.run_id and run.status = 'running'
        limit 1
    ) as run
    cross join lateral (
        select batch.first_seq, batch.n, batch.recorded_at, batch.run_no
        from agui.batch as batch
        where batch.thread_key = next_place.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest
    where next_place.after_seq is null
        or next_place.after_seq = latest.first_seq + latest.n - 1 and latest.run_no = run.run_no;
end;

comment on function agui_internal.next_place(uuid, text, bigint) is
    'Where the next events of a run in progress go, and the time that theirs must not be before; no row where that takes a closer look: another '
    'run, or a call that may be a repeat.';

revoke execute on function agui_internal.next_place(uuid, text, bigint) from public;
