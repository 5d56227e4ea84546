create or replace function agui_internal.refuse_damaged_log(thread_key uuid, run_no int)
returns void
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run     agui.run;
    problem text;
begin
    select * into run
    from agui.run as ended
    where ended.thread_key = agui_internal.visible_key(refuse_damaged_log.thread_key) and ended.run_no = refuse_damaged_log.run_no and ended.last_seq is not null;
    if not found then
        return;
    end if;

    -- The batches of all runs, for those that were in progress at the same time interleave. What is
    -- missing between them may be of this run.
    select damaged.problem into problem
    from (
        select
            batch.first_seq,
            case
                when batch.first_seq > batch.expected_seq or batch.first_seq < batch.expected_seq and run.run_no in (batch.run_no, batch.previous_no) then
                    format('the batch at seq %s should begin at seq %s: events are missing or double', batch.first_seq, batch.expected_seq)
                when batch.run_no <> run.run_no then null
                when json_typeof(batch.events) <> 'array' then
                    format('the batch at seq %s holds a JSON %s in place of an array of events', batch.first_seq, json_typeof(batch.events))
                when json_array_length(batch.events) <> batch.n then
                    format('the batch at seq %s holds %s events, its row says %s', batch.first_seq, json_array_length(batch.events), batch.n)
            end as problem
        from (
            select
                stored.*,
                lag(stored.first_seq + stored.n, 1, run.first_seq) over in_order as expected_seq,
                lag(stored.run_no) over in_order as previous_no
            from agui.batch as stored
            where stored.thread_key = run.thread_key and stored.first_seq >= run.first_seq and stored.first_seq <= run.last_seq
            window in_order as (order by stored.first_seq)
        ) as batch
    ) as damaged
    where damaged.problem is not null
    order by damaged.first_seq
    limit 1;
    if problem is null then
        select format('the log has no event at seq %s, where run "%s" ends', run.last_seq, run.run_id)
        into problem
        where not exists (
            select
            from agui.batch as stored
            where stored.thread_key = run.thread_key and stored.run_no = run.run_no
                and stored.first_seq >= run.first_seq and stored.first_seq <= run.last_seq
                and stored.first_seq + stored.n = run.last_seq + 1
        );
    end if;
    if problem is not null then
        raise exception using
            errcode = 'data_corrupted',
            message = problem,
            hint = 'agui.verify names all that is wrong with the thread.';
    end if;
end
$$;

comment on function agui_internal.refuse_damaged_log(uuid, int) is
    'Raises data_corrupted if the log of an ended run is damaged: batches are missing, overlap, or '
    'hold another number of events than their rows say. Compaction and repack call it where what '
    'they read of the run itself leaves a doubt.';

revoke execute on function agui_internal.refuse_damaged_log(uuid, int) from public;
