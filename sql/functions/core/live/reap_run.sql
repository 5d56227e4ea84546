create or replace function agui_internal.reap_run(thread_key uuid, run_no int)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    stale agui.run;
begin
    perform agui_internal.own_key(thread_key);
    -- If the lock is taken, its holder is appending to the thread. If that is the writer of another
    -- run, the next reap closes this one.
    if not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(reap_run.thread_key)) then
        return null;
    end if;
    perform agui_internal.lock_thread(reap_run.thread_key);
    select * into stale
    from agui.run as run
    where run.thread_key = reap_run.thread_key and run.run_no = reap_run.run_no and run.status = 'running';
    if not found or not agui_internal.is_stale(stale) or agui_internal.is_newly_promoted() then
        return null;
    end if;
    return agui_internal.close_run(stale.thread_key, stale.run_no, format(
        'no sign of life for %s', agui_internal.lease_of(stale.has_heartbeat, stale.seen_at, agui_internal.last_seen_at(stale))
    ));
end
$$;

comment on function agui_internal.reap_run(uuid, int) is
    'Closes a run in progress without a sign of life within its lease, as agui_internal.close_run '
    'does, and returns its last seq. Null: it is alive, has ended, or its thread is being written '
    'to.';

revoke execute on function agui_internal.reap_run(uuid, int) from public;
