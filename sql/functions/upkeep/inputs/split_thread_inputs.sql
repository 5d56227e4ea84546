create or replace function agui_internal.split_thread_inputs(thread_key uuid, run_nos int[])
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run record;
begin
    perform agui_internal.own_key(thread_key);
    if not agui_internal.hold_thread(thread_key) then
        return false;
    end if;
    for run in
        select processed.run_no, processed.last_seq, processed.log_bytes is not null as is_compacted
        from unnest(run_nos) as requested (run_no)
        join agui.run as processed
            on processed.thread_key = split_thread_inputs.thread_key and processed.run_no = requested.run_no
        order by processed.run_no
    loop
        perform agui_internal.split_input(thread_key, run.run_no);
        if run.is_compacted then
            -- The log is smaller now, and may not pay for the snapshot any more.
            update agui.run as compacted
            set log_bytes = (agui_internal.run_size(split_thread_inputs.thread_key, run.run_no, run.last_seq)).log_bytes
            where compacted.thread_key = split_thread_inputs.thread_key and compacted.run_no = run.run_no and compacted.log_bytes is not null;
            if agui_internal.previous_tip(thread_key) is distinct from run.run_no
                and exists (
                    select
                    from agui.snapshot as snapshot
                    where snapshot.thread_key = split_thread_inputs.thread_key and snapshot.run_no = run.run_no
                )
            then
                perform agui_internal.drop_needless_snapshot(thread_key, run.run_no);
            end if;
        end if;
    end loop;
    return true;
end
$$;

comment on function agui_internal.split_thread_inputs(uuid, int[]) is
    'Stores the inputs of runs of a thread in parts, where that gives the same text, and drops '
    'snapshots that the smaller log does not pay for. False: another transaction holds the thread, or '
    'it is gone.';

revoke execute on function agui_internal.split_thread_inputs(uuid, int[]) from public;
