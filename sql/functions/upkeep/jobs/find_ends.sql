create or replace function agui_internal.find_ends(max_runs int default 500)
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    own     record;
    run     agui.run;
    ending  record;
    found_n int := 0;
begin
    select * into own from agui_internal.own_keys();
    for run in
        select stored.*
        from agui.run as stored
        where stored.end_seq is null and stored.status <> 'running'
            and stored.thread_key >= own.low and stored.thread_key <= own.high
        order by stored.thread_key, stored.run_no
        limit max_runs
    loop
        -- Appends update rows of runs under this lock. A thread that is being written to waits for
        -- the next call.
        continue when not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(run.thread_key));
        ending := agui_internal.last_end(run.thread_key, run.run_no);
        update agui.run as ended
        set status = case
                when ended.cut_off_reason is not null and ending.status = 'failed' then 'cut_off'
                else coalesce(ending.status, ended.status)
            end,
            -- Without an end in the log, which agui.verify reports, the run must not come again.
            end_seq = coalesce(ending.seq, ended.last_seq, ended.first_seq)
        where ended.thread_key = run.thread_key and ended.run_no = run.run_no and ended.end_seq is null and ended.status <> 'running';
        found_n := found_n + 1;
    end loop;
    return found_n;
end
$$;

comment on function agui_internal.find_ends(int) is
    'Sets status and end_seq of ended runs whose rows do not have the end (end_seq), from their '
    'log: rows that were restored from a store without that column. Returns how many; 0: there are '
    'none, or their threads are being written to.';

revoke execute on function agui_internal.find_ends(int) from public;
