-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.batch_with(thread_key uuid, seq bigint)
returns table (first_seq bigint, recorded_at timestamptz, n int, run_no int, events json, earlier_us int[])
language sql
stable
parallel safe
rows 1
begin atomic
    select batch.first_seq, batch.recorded_at, batch.n, batch.run_no, batch.events, batch.earlier_us
    from agui.batch as batch
    where batch.thread_key = batch_with.thread_key and batch.first_seq <= batch_with.seq
    order by batch.first_seq desc
    limit 1;
end;

comment on function agui_internal.batch_with(uuid, bigint) is
    'The batch of a thread that contains the event with this seq; after the end of the log its '
    'last batch, before its beginning none.';

revoke execute on function agui_internal.batch_with(uuid, bigint) from public;
