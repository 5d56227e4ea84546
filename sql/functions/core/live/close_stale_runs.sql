create or replace function agui_internal.close_stale_runs(head agui.run, subject text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    other        agui.run;
    last_seen_at timestamptz;
    alive_until  timestamptz;
    now_at       timestamptz;
    any_closed   boolean := false;
begin
    if head.status <> 'running' and head.open_from = head.run_no then
        return false;
    end if;
    for other in
        select run.*
        from agui.run as run
        where run.thread_key = head.thread_key and run.status = 'running' and run.run_no >= head.open_from
        order by run.run_no
    loop
        last_seen_at := agui_internal.last_seen_at(other);
        alive_until := agui_internal.alive_until(other);
        now_at := clock_timestamp();
        if alive_until > now_at then
            raise exception using
                errcode = 'UI006',
                message = format('%s cannot begin: run "%s" is in progress in this thread', subject, other.run_id),
                detail = format(
                    'Its last sign of life was %s ago; without another one its lease ends in %s, at %s.',
                    date_trunc('milliseconds', now_at - last_seen_at), date_trunc('milliseconds', alive_until - now_at), alive_until
                ),
                hint = 'Wait until it has ended, request its writer to stop (agui.request_stop), end it if its writer is gone (agui.abandon), '
                    'or begin the run with parallel => true. After the lease the next run ends it.';
        elsif agui_internal.is_newly_promoted() then
            raise exception using
                errcode = 'UI006',
                message = format('%s cannot begin: run "%s" is in progress in this thread', subject, other.run_id),
                detail = format(
                    'Its last sign of life was %s ago, before this server was promoted: its lease begins with the next call of agui.keep_alive or agui.reap.',
                    date_trunc('milliseconds', now_at - last_seen_at)
                ),
                hint = 'A recorder calls agui.keep_alive. Without a recorder, call agui.reap(), or end the run if its writer is gone (agui.abandon).';
        end if;
        perform agui_internal.close_run(head.thread_key, other.run_no, format(
            'no sign of life for %s', agui_internal.lease_of(other.has_heartbeat, other.seen_at, last_seen_at)
        ));
        any_closed := true;
    end loop;
    return any_closed;
end
$$;

comment on function agui_internal.close_stale_runs(agui.run, text) is
    'Closes the runs of a thread whose lease has expired, so that the next run can begin. head is '
    'the run that began last. Returns whether it closed any. UI006: a run is still alive. The '
    'caller holds the lock of the thread.';

revoke execute on function agui_internal.close_stale_runs(agui.run, text) from public;
