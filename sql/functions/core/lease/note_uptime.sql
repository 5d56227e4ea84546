create or replace function agui_internal.note_uptime(is_writer boolean)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A recorder calls every second; cron, which calls agui.reap, at most every minute.
    gap constant interval := case
        when is_writer then agui_internal.heartbeat_lease() / 2
        else greatest(agui_internal.lease() / 3, interval '90 seconds')
    end;
    due constant interval := least(interval '10 seconds', agui_internal.heartbeat_lease() / 3);
    current_timeline constant text := agui_internal.timeline();
    last   agui_internal.uptime;
    now_at timestamptz;
begin
    if pg_is_in_recovery() then
        return;  -- writers use another server
    end if;
    select * into last from agui_internal.uptime;
    if not found then
        insert into agui_internal.uptime (up_since, checked_at, timeline)
        values ('-infinity', clock_timestamp(), current_timeline)
        on conflict do nothing;
        return;
    end if;
    if last.checked_at > clock_timestamp() - due and last.timeline is not distinct from current_timeline then
        return;
    end if;
    -- If the row is locked, another transaction is writing it with the same information.
    select * into last from agui_internal.uptime for no key update skip locked;
    if not found then
        return;
    end if;
    now_at := clock_timestamp();
    update agui_internal.uptime as uptime
    set up_since = case
            when last.checked_at < now_at - gap or last.timeline <> current_timeline then now_at
            else last.up_since
        end,
        checked_at = now_at,
        timeline = current_timeline;
end
$$;

comment on function agui_internal.note_uptime(boolean) is
    'Records that a writer or a job has reached the server. After a period without such calls, and '
    'after a promotion, it also records that leases count from now on. Writes one row, at most '
    'every 10 seconds.';

revoke execute on function agui_internal.note_uptime(boolean) from public;
