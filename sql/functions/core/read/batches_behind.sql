-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.batches_behind(thread_key uuid, after_seq bigint)
returns table (first_seq bigint, recorded_at timestamptz, n int, run_no int, events json, earlier_us int[])
language sql
stable
parallel safe
rows 100
begin atomic
    select batch.first_seq, batch.recorded_at, batch.n, batch.run_no, batch.events, batch.earlier_us
    from agui.batch as batch
    where batch.thread_key = batches_behind.thread_key
        and batch.first_seq >= coalesce(
            (
                -- a repacked batch may begin before the event after after_seq
                select max(holder.first_seq)
                from agui.batch as holder
                where holder.thread_key = batches_behind.thread_key
                    and holder.first_seq <= least(batches_behind.after_seq, 9223372036854775806) + 1
            ),
            1
        );
end;

comment on function agui_internal.batches_behind(uuid, bigint) is
    'The batches of a thread from the one that contains the event after after_seq. Its first '
    'events may precede that event.';

revoke execute on function agui_internal.batches_behind(uuid, bigint) from public;
