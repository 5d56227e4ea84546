create or replace function agui_internal.compact_running_run(thread_key uuid, run_no int, stop_at timestamptz default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    latest agui.run;
begin
    perform agui_internal.own_key(thread_key);
    if not agui_internal.hold_thread(thread_key) then
        return;
    end if;
    -- Read a second time: the run may have ended since, and then compaction processes it.
    select run.* into latest
    from agui.run as run
    where run.thread_key = compact_running_run.thread_key and run.run_no = compact_running_run.run_no;
    if latest.status = 'running' and not agui_internal.awaits_start(thread_key, run_no, 9223372036854775807) then
        perform agui_internal.refuse_quarantined(latest, null, of_job => true);
        perform agui_internal.write_snapshot(
            thread_key, run_no,
            agui_internal.fold_run(thread_key, run_no, null, agui_internal.fold_base(thread_key, run_no), stop_at)
        );
        perform agui_internal.fill_title(thread_key);
    end if;
end
$$;

comment on function agui_internal.compact_running_run(uuid, int, timestamptz) is
    'Makes or renews the snapshot of a run in progress. Does nothing if the run has ended, if '
    'another transaction holds its thread, or if a later RUN_STARTED would change what its events '
    'mean. From stop_at on (null: no limit) it ends with a snapshot of a part of the run, from '
    'which the next call continues.';

revoke execute on function agui_internal.compact_running_run(uuid, int, timestamptz) from public;
