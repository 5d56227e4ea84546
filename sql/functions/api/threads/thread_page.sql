create or replace function agui.thread_page(
    agent    text default null,
    archived boolean default false,
    title    text default null,
    since    timestamptz default null,
    status   text default null,
    head_only boolean default false,
    metadata jsonb default null,
    max_rows int default 50,
    cursor   text default null,
    scope    text default ''
)
returns agui.thread_page_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- The index has the order of the list. The planner does not know the limit of a page, so it would
-- prefer to sort all threads of the scope, or to compile a plan for all of them.
set plan_cache_mode = force_generic_plan
set enable_sort = off
set jit = off
as $$
declare
    most_rows   constant int := 1000;
    most_looked constant int := 10000;
    -- Scope, archived and since are in the index, so without other filters every thread read is
    -- listed.
    -- An end that the head does not undo: a failure remains one when the next run has finished.
    of_any_run constant boolean := coalesce(status in ('cancelled', 'failed', 'cut_off') and not coalesce(head_only, false), false);
    is_filtered constant boolean := coalesce(nullif(agent, ''), nullif(title, ''), status, metadata::text) is not null;
    -- The keys of all threads of a scope begin with the key of the scope.
    scope_part  constant text := left(agui_internal.first_key(scope)::text, 18);
    least_us    constant bigint := -62135596800000000;  -- the years 1 to 9999
    most_us     constant bigint := 253402300799999999;
    below_us    bigint;
    below_at    timestamptz := 'infinity';
    below_key   uuid := (scope_part || '-ffff-ffffffffffff')::uuid;
    scope_number constant bigint := agui_internal.scope_key(below_key);
    looked      int := 0;
    next        record;
    last        agui.thread_activity;
    listed      agui.thread_activity[] := '{}';
    page        agui.thread_page_row;
begin
    if scope is null then
        raise exception using
            errcode = '22023',
            message = 'a list of threads needs a scope that is not null';
    end if;
    if max_rows is null or max_rows not between 1 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('a list of threads: max_rows must be between 1 and %s, not %s',
                most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the next page, pass the cursor that this one ends with.';
    end if;
    if status not in ('running', 'stale', 'finished', 'interrupted', 'cancelled', 'failed', 'cut_off') then
        raise exception using
            errcode = '22023',
            message = format('a list of threads: unknown status "%s"', status),
            hint = 'Use running, stale (running, without a sign of life), finished, interrupted, cancelled, failed or cut_off.';
    end if;
    if cursor ~ '^[0-9a-f]{32}$' then
        below_us := ('x' || left(cursor, 16))::bit(64)::bigint;
    end if;
    if cursor is not null and (below_us is null or below_us not between least_us and most_us) then
        raise exception using
            errcode = '22023',
            message = format('a list of threads: "%s" is not a cursor', left(cursor, 100)),
            hint = 'Use the next_cursor of a page, or the cursor of a thread from agui.threads.';
    end if;
    if agui_internal.has_row_security() and agui_internal.visible_key(below_key) is null then
        page.threads := '{}';
        return page;
    end if;
    if cursor is not null then
        below_at := timestamptz 'epoch' + below_us * interval '1 microsecond';
        below_key := (scope_part || '-' || substr(cursor, 17, 4) || '-' || substr(cursor, 21))::uuid;
    end if;

    for next in
        select
            candidate.activity,
            (nullif(thread_page.agent, '') is null or (candidate.activity).agent = thread_page.agent)
                and (
                    nullif(thread_page.title, '') is null
                    or strpos(
                        lower(coalesce((candidate.activity).title, (candidate.activity).derived_title)), lower(thread_page.title)
                    ) > 0
                )
                and (thread_page.metadata is null or (candidate.activity).metadata @> thread_page.metadata)
                and (
                    thread_page.status is null
                    or of_any_run and exists (
                        select
                        from agui.run as run
                        where run.thread_key = candidate.thread_key
                            and run.status = thread_page.status
                            and run.status in ('interrupted', 'cancelled', 'failed', 'cut_off')
                            and run.ended_at >= coalesce(thread_page.since, '-infinity')
                        offset 0  -- else the runs of all scopes that ended so may be read, once
                    )
                    or not of_any_run and exists (
                        select
                        from (
                            select run
                            from agui.run as run
                            where run.thread_key = candidate.thread_key
                            order by run.run_no desc
                            limit 1
                        ) as head
                        where case thread_page.status
                            when 'stale' then agui_internal.is_stale(head.run)
                            -- What waits is what a restore of the head has.
                            when 'interrupted' then (head.run).status <> 'running'
                                and (agui_internal.asking_run(head.run) is distinct from null or agui_internal.has_open_call(head.run))
                            else (head.run).status = thread_page.status
                        end
                    )
                ) as is_listed
        from (
            -- Archived threads and the others: each is a range of the index. A condition on the
            -- argument alone skips a range.
            (
                select activity, activity.active_at, activity.thread_key
                from agui.thread_activity as activity
                where activity.scope_key = scope_number
                    and not activity.archived
                    and thread_page.archived is not true
                    and activity.active_at >= coalesce(thread_page.since, '-infinity')
                    and (activity.active_at, activity.thread_key) < (below_at, below_key)
                order by activity.active_at desc, activity.thread_key desc
            )
            union all
            (
                select activity, activity.active_at, activity.thread_key
                from agui.thread_activity as activity
                where activity.scope_key = scope_number
                    and activity.archived
                    and thread_page.archived is not false
                    and activity.active_at >= coalesce(thread_page.since, '-infinity')
                    and (activity.active_at, activity.thread_key) < (below_at, below_key)
                order by activity.active_at desc, activity.thread_key desc
            )
        ) as candidate
        order by candidate.active_at desc, candidate.thread_key desc
        -- One more row shows whether another page follows.
        limit case when is_filtered then most_looked else max_rows end + 1
    loop
        if cardinality(listed) = max_rows or looked = most_looked then
            page.next_cursor := agui_internal.thread_cursor(last.active_at, last.thread_key);
            page.searched_to := case when cardinality(listed) < max_rows then last.active_at end;
            exit;
        end if;
        looked := looked + 1;
        last := next.activity;
        if next.is_listed then
            listed := listed || last;
        end if;
    end loop;

    page.threads := array(select thread from agui_internal.show_threads(listed, scope) as thread);
    return page;
end
$$;

comment on function agui.thread_page(text, boolean, text, timestamptz, text, boolean, jsonb, int, text, text) is
    'Returns a page of the threads of a scope, most recent activity first: up to max_rows (default '
    '50, at most 1,000) after the position in cursor, which is the next_cursor of the previous '
    'page. Filters: agent; archived (null: both); title (contains this text, case-insensitive); '
    'since (active at or after); status; metadata (contains this object). The statuses running, '
    'stale (running without a sign of life) and finished are those of the head. interrupted: it waits for '
    'answers, also after a run with an answer failed, or for the results of tool calls (agui.waiting). cancelled, failed and cut_off find threads of which any run ended so, at or after '
    'since; with head_only, they too are those of the head. A page reads the threads that it '
    'shows, and the runs of each to count branches. With agent, title, status or metadata it reads '
    'at most 10,000 threads: it may be short or empty and still have a next_cursor, and searched_to '
    'says how far back it went. A thread that becomes active moves to the top: pages after a cursor show no thread twice, and do not show '
    'that one. To find it, read the first page, or pass the active_at of the first thread seen as '
    'since. To list all threads as of one point in time, read the pages in one REPEATABLE READ '
    'transaction. '
    'Errors: UI011 max_rows is out of range, 22023 unknown status or invalid cursor.';

revoke execute on function agui.thread_page(text, boolean, text, timestamptz, text, boolean, jsonb, int, text, text) from public;
