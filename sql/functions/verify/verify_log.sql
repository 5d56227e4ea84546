create or replace function agui.verify_log(thread_key uuid)
returns setof agui.problem
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with batch as (
        select
            batch.first_seq,
            batch.n,
            batch.run_no,
            run.run_id,
            json_array_length(batch.events) as stored_n,
            batch.recorded_at,
            coalesce(lag(batch.first_seq + batch.n) over in_order, 1) as expected_seq,
            lag(batch.recorded_at) over in_order as previous_at
        from agui.batch as batch
        left join agui.run as run
            on run.thread_key = batch.thread_key and run.run_no = batch.run_no
        where batch.thread_key = verify_log.thread_key
        window in_order as (order by batch.first_seq)
    )
    select batch.run_id, problem.text
    from batch
    cross join lateral (
        values
            (batch.first_seq <> batch.expected_seq,
                format('the batch at seq %s should begin at seq %s: events are missing or double', batch.first_seq, batch.expected_seq)),
            (batch.stored_n <> batch.n,
                format('the batch at seq %s holds %s events, its row says %s', batch.first_seq, batch.stored_n, batch.n)),
            (batch.run_id is null,
                format('the batch at seq %s belongs to run number %s, which does not exist', batch.first_seq, batch.run_no)),
            (batch.recorded_at < batch.previous_at,
                format('the batch at seq %s was recorded before the one that precedes it', batch.first_seq))
    ) as problem (is_there, text)
    where problem.is_there
    order by batch.first_seq
$$;

comment on function agui.verify_log(uuid) is 'What is wrong with the batches of a thread: seqs, counts, runs, times.';

revoke execute on function agui.verify_log(uuid) from public;
