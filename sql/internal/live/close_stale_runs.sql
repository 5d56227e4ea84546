create or replace function agui_internal.close_stale_runs(thread_key uuid, subject text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    other      agui.run;
    alive_at   timestamptz;
    any_closed boolean := false;
begin
    for other in
        select run.*
        from agui.run as run
        where run.thread_key = close_stale_runs.thread_key and run.status = 'running'
        order by run.run_no
    loop
        alive_at := agui_internal.last_seen_at(other);
        if clock_timestamp() - alive_at < agui_internal.lease() then
            raise exception using
                errcode = 'UI006',
                message = format('%s cannot begin: run "%s" is in progress in this thread', subject, other.run_id),
                detail = format('Its last sign of life was %s ago.', clock_timestamp() - alive_at),
                hint = format('Wait until it has ended, or begin the run with parallel => true. It counts as stale after %s (setting agui.lease).', agui_internal.lease());
        end if;
        perform agui_internal.close_run(thread_key, other.run_no, format('no sign of life for %s', agui_internal.lease()));
        any_closed := true;
    end loop;
    return any_closed;
end
$$;

comment on function agui_internal.close_stale_runs(uuid, text) is
    'Closes the runs of a thread whose lease has run out, so that the next run may begin; UI006 when one is still alive. '
    'Answers whether it closed any. The caller holds the thread''s lock.';

revoke execute on function agui_internal.close_stale_runs(uuid, text) from public;
