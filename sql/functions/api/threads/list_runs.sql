create or replace function agui.list_runs(
    status   text[] default '{failed,cut_off}',
    since    timestamptz default null,
    max_rows int default 50,
    cursor   text default null,
    scope    text default ''
)
returns setof agui.run_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- The index has the order of the list. As in agui.thread_page.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    most_rows constant int := 1000;
    all_of_them constant text[] := '{interrupted,cancelled,failed,cut_off}';
    -- The keys of all threads of a scope begin with the key of the scope.
    scope_part constant text := left(agui_internal.first_key(scope)::text, 18);
    unknown   text;
    below_us  bigint;
    below_at  timestamptz := 'infinity';
    below_key uuid := (scope_part || '-ffff-ffffffffffff')::uuid;
    below_no  int := 2147483647;
begin
    if scope is null then
        raise exception using
            errcode = '22023',
            message = 'a list of runs needs a scope that is not null';
    end if;
    if max_rows is null or max_rows not between 1 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('a list of runs: max_rows must be between 1 and %s, not %s', most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, pass the cursor of the last run of this one.';
    end if;
    select coalesce(wanted.name, 'null') into unknown
    from unnest(status) as wanted (name)
    where (wanted.name = any (all_of_them)) is not true
    limit 1;
    if found then
        raise exception using
            errcode = '22023',
            message = format('a list of runs: unknown status "%s"', unknown),
            hint = 'Use interrupted, cancelled, failed or cut_off. agui.threads finds threads whose head is running or finished; agui.runs lists all runs of a thread.';
    end if;
    if cursor ~ '^[0-9a-f]{32}[0-7][0-9a-f]{7}$' then
        below_us := ('x' || left(cursor, 16))::bit(64)::bigint;
    end if;
    if cursor is not null and (below_us is null or below_us not between -62135596800000000 and 253402300799999999) then
        raise exception using
            errcode = '22023',
            message = format('a list of runs: "%s" is not a cursor', left(cursor, 100)),
            hint = 'Use the cursor of a run of agui.list_runs.';
    end if;
    if agui_internal.has_row_security() and agui_internal.visible_key(below_key) is null then
        return;
    end if;
    if cursor is not null then
        below_at := timestamptz 'epoch' + below_us * interval '1 microsecond';
        below_key := (scope_part || '-' || substr(cursor, 17, 4) || '-' || substr(cursor, 21, 12))::uuid;
        below_no := ('x' || substr(cursor, 33))::bit(32)::int;
    end if;

    return query
    select
        thread.thread_id,
        (listed.run).run_id,
        parent.run_id,
        (listed.run).status,
        activity.title,
        activity.agent,
        (listed.run).first_seq,
        (listed.run).last_seq,
        (listed.run).started_at,
        (listed.run).ended_at,
        (why.ended).error_code,
        (why.ended).error_message,
        (why.ended).stop_reason,
        (why.ended).cut_off_reason,
        agui_internal.run_cursor((listed.run).ended_at, (listed.run).thread_key, (listed.run).run_no)
    from (
        -- A page of each status, of which the newest are the page of all.
        select newest.run
        from (select distinct wanted.name from unnest(coalesce(list_runs.status, all_of_them)) as wanted (name)) as wanted
        cross join lateral (
            select run
            from agui.run as run
            where left(run.thread_key::text, 18) collate "C" = scope_part
                and run.status = wanted.name
                and run.status in ('interrupted', 'cancelled', 'failed', 'cut_off')
                and run.ended_at >= coalesce(list_runs.since, '-infinity')
                and (run.ended_at, run.thread_key, run.run_no) < (below_at, below_key, below_no)
            order by run.ended_at desc, run.thread_key desc, run.run_no desc
            limit list_runs.max_rows
        ) as newest
        order by (newest.run).ended_at desc, (newest.run).thread_key desc, (newest.run).run_no desc
        limit list_runs.max_rows
    ) as listed
    cross join lateral (
        -- Two scopes may have the same part of keys.
        select stored.thread_id
        from agui.thread as stored
        where stored.thread_key = (listed.run).thread_key and stored.scope = list_runs.scope
        offset 0
    ) as thread
    left join lateral (
        select stored.run_id
        from agui.run as stored
        where stored.thread_key = (listed.run).thread_key and stored.run_no = (listed.run).parent_no
        offset 0
    ) as parent on true
    left join lateral (
        select coalesce(stored.title, stored.derived_title) as title, stored.agent
        from agui.thread_activity as stored
        where stored.thread_key = (listed.run).thread_key
        offset 0
    ) as activity on true
    cross join lateral (
        select agui_internal.why_ended(listed.run, 1000) as ended
        offset 0
    ) as why
    order by (listed.run).ended_at desc, (listed.run).thread_key desc, (listed.run).run_no desc;
end
$$;

comment on function agui.list_runs(text[], timestamptz, int, text, text) is
    'Returns the runs of all threads of a scope that ended with one of these statuses (default: '
    'failed and cut_off; also cancelled and interrupted, answered or not; null: all four), at or after since, the '
    'last one first: up to max_rows (default 50, at most 1,000). To continue after a run, pass its '
    'cursor; fewer rows than max_rows are the last ones. A page reads the runs that it shows, and of '
    'each the batch with its end. '
    'Errors: UI011 max_rows is out of range, 22023 unknown status or invalid cursor.';

revoke execute on function agui.list_runs(text[], timestamptz, int, text, text) from public;
