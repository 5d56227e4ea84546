create or replace function agui_internal.claim_alive_until(seen_at timestamptz)
returns timestamptz
language sql
stable
parallel safe
return greatest(seen_at, agui_internal.reachable_since()) + agui_internal.heartbeat_lease();

comment on function agui_internal.claim_alive_until is
    'The end of the lease of a claim, given claim.seen_at, unless agui.keep_alive renews it. As in '
    'agui_internal.alive_until, the time in which no writer could reach the server does not count.';

create or replace function agui_internal.has_live_run(thread_key uuid)
returns boolean
language sql
stable
parallel safe
return exists (
    select
    from agui.run as run
    where run.thread_key = has_live_run.thread_key and run.status = 'running' and not agui_internal.is_stale(run)
);

comment on function agui_internal.has_live_run is
    'Whether a run of a thread is in progress whose writer is alive.';

create or replace function agui_internal.is_stale(run agui.run)
returns boolean
language sql
stable
parallel safe
return run.status = 'running' and agui_internal.alive_until(run) < clock_timestamp();

comment on function agui_internal.is_stale is
    'Whether a run is in progress without a sign of life of its writer within the lease.';

create or replace function agui_internal.is_newly_promoted()
returns boolean
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from agui_internal.uptime as uptime where uptime.timeline <> agui_internal.timeline())
$$;

comment on function agui_internal.is_newly_promoted is
    'Whether the server was promoted and neither agui.keep_alive nor agui.reap has been called '
    'since. Until then the leases do not count.';

-- That the server is up is so for all scopes.
-- role: worker; check: none
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

comment on function agui_internal.note_uptime is
    'Records that a writer or a job has reached the server. After a period without such calls, and '
    'after a promotion, it also records that leases count from now on. Writes one row, at most '
    'every 10 seconds.';

create or replace function agui_internal.timeline()
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return left(pg_walfile_name(pg_current_wal_lsn()), 8);
exception
    when others then
        return null;  -- some managed services lack these functions
end
$$;

comment on function agui_internal.timeline is
    'The timeline of the write-ahead log, which changes when a standby is promoted; null: this '
    'server does not provide it.';

create or replace function agui_internal.stale_runs(out thread_key uuid, out run_no int)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select run.thread_key, run.run_no
    from agui.run as run
    left join agui_internal.job_note as note
        on note.job = 'reap' and note.thread_key = run.thread_key and note.run_no = run.run_no
    where run.status = 'running'
        and agui_internal.alive_until(run) < clock_timestamp()
        and (note.next_at is null or note.next_at <= clock_timestamp())
    -- Runs without a failed attempt come first.
    order by coalesce(note.attempts, 0), run.thread_key, run.run_no
$$;

comment on function agui_internal.stale_runs is
    'The stale runs of all scopes, in the order in which agui.reap closes them. Those with a '
    'failed attempt come last, after their backoff.';

create or replace function agui_internal.alive_until(run agui.run)
returns timestamptz
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select greatest(last.seen_at, agui_internal.reachable_since())
        + agui_internal.lease_of(run.has_heartbeat, run.seen_at, last.seen_at)
    from (select agui_internal.last_seen_at(run) as seen_at offset 0) as last
$$;

comment on function agui_internal.alive_until is
    'The end of the lease of a run in progress, unless its writer gives another sign of life. The '
    'lease counts from the last sign of life or, after an outage, from when writers could reach '
    'the server.';

create or replace function agui_internal.reachable_since()
returns timestamptz
language sql
stable
parallel safe
return greatest(
    (select uptime.up_since from agui_internal.uptime as uptime),
    -- A standby has no information about the server that writers reach. Statistics are reset when a
    -- server recovers from a crash, possibly long after its start. If someone resets them by hand,
    -- the only effect is that runs get a longer lease.
    case when not pg_is_in_recovery() then greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time()) end
);

comment on function agui_internal.reachable_since is
    'Since when writers could reach the server, as far as it is known. No lease counts the time '
    'before.';

create or replace function agui_internal.lease_of(has_heartbeat boolean, seen_at timestamptz, last_seen_at timestamptz)
returns interval
language sql
stable
parallel safe
return case
    -- Events after the heartbeats have ended come from a writer that sends none.
    when has_heartbeat and last_seen_at < seen_at + agui_internal.heartbeat_lease() then agui_internal.heartbeat_lease()
    else agui_internal.lease()
end;

comment on function agui_internal.lease_of is
    'The lease of a run in progress, given run.has_heartbeat, run.seen_at and its last sign of '
    'life (agui_internal.last_seen_at).';

create or replace function agui_internal.lease()
returns interval
language sql
stable
parallel safe
return make_interval(secs => agui_internal.setting_value('lease'));

comment on function agui_internal.lease is
    'How long a run may be in progress without a sign of life before it is stale: the setting '
    'lease.';

create or replace function agui_internal.heartbeat_lease()
returns interval
language sql
stable
parallel safe
return make_interval(secs => least(agui_internal.setting_value('heartbeat_lease'), agui_internal.setting_value('lease')));

comment on function agui_internal.heartbeat_lease is
    'The lease of a run whose writer calls agui.keep_alive: the setting heartbeat_lease, but never '
    'longer than the setting lease.';

create or replace function agui_internal.last_seen_at(run agui.run)
returns timestamptz
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select greatest(run.seen_at, (
        select batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
        order by batch.first_seq desc
        limit 1
    ))
$$;

comment on function agui_internal.last_seen_at is
    'The last sign of life of the writer of a run: a batch or a call of agui.keep_alive.';
