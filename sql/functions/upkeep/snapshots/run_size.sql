create or replace function agui_internal.run_size(thread_key uuid, run_no int, through_seq bigint, out n bigint, out log_bytes bigint)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The run's first_seq as a subquery bounds the scan. As a join, which may read all batches before it, it would not.
    select
        sum(batch.n),
        sum(agui_internal.stored_bytes(batch.events, batch.earlier_us)) + agui_internal.input_bytes(run_size.thread_key, run_size.run_no)
    into n, log_bytes
    from agui.batch as batch
    where batch.thread_key = run_size.thread_key
        and batch.run_no = run_size.run_no
        and batch.first_seq >= (
            select run.first_seq from agui.run as run where run.thread_key = run_size.thread_key and run.run_no = run_size.run_no
        )
        and batch.first_seq <= run_size.through_seq;
end
$$;

comment on function agui_internal.run_size(uuid, int, bigint) is
    'The number of events of an ended run up to a seq, and the stored size in bytes of its batches '
    'and its input.';

revoke execute on function agui_internal.run_size(uuid, int, bigint) from public;
