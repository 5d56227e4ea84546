create or replace function agui_internal.run_size(thread_key uuid, run_no int, through_seq bigint, out n bigint, out log_bytes bigint)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    select sum(batch.n), sum(agui_internal.stored_bytes(batch.events, batch.earlier_us)) + agui_internal.input_bytes(run.thread_key, run.run_no)
    into n, log_bytes
    from agui.run as run
    join agui.batch as batch
        on batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq >= run.first_seq and batch.first_seq <= run_size.through_seq
    where run.thread_key = run_size.thread_key and run.run_no = run_size.run_no
    group by run.thread_key, run.run_no;
end
$$;

comment on function agui_internal.run_size(uuid, int, bigint) is
    'The number of events of an ended run up to a seq, and the stored size in bytes of its batches '
    'and its input.';

revoke execute on function agui_internal.run_size(uuid, int, bigint) from public;
