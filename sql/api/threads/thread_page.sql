create or replace function agui.thread_page(
    agent    text default null,
    archived boolean default false,
    title    text default null,
    since    timestamptz default null,
    status   text default null,
    metadata jsonb default null,
    max_rows int default 50,
    cursor   text default null,
    scope    text default ''
)
returns agui.thread_page_row
language plpgsql
stable
security definer
parallel safe
set search_path = pg_catalog, pg_temp
-- The index has the order of the list. The planner does not know the limit of a page: it would
-- rather sort all threads of the scope, or compile a plan for all of them.
set plan_cache_mode = force_generic_plan
set enable_sort = off
set jit = off
as $$
declare
    most_rows   constant int := 1000;
    most_looked constant int := 10000;
    -- Scope, archived and since are in the index: every thread that is looked at is listed. Others
    -- are not.
    is_filtered constant boolean := coalesce(nullif(agent, ''), nullif(title, ''), status, metadata::text) is not null;
    -- The threads of a scope have keys that begin with its own.
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
            hint = 'Ask for the threads behind a page with its next_cursor.';
    end if;
    if status not in ('running', 'stale', 'finished', 'failed') then
        raise exception using
            errcode = '22023',
            message = format('a list of threads: there is no status "%s"', status),
            hint = 'A thread has the status of its head: running (stale: without a sign of life), finished or failed.';
    end if;
    if cursor ~ '^[0-9a-f]{32}$' then
        below_us := ('x' || left(cursor, 16))::bit(64)::bigint;
    end if;
    if cursor is not null and (below_us is null or below_us not between least_us and most_us) then
        raise exception using
            errcode = '22023',
            message = format('a list of threads: "%s" is no cursor', left(cursor, 100)),
            hint = 'A cursor is the next_cursor of a page, or the cursor of a thread, as agui.threads gave it.';
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
                    or exists (
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
                            else (head.run).status = thread_page.status
                        end
                    )
                ) as is_listed
        from (
            -- The archived ones and the others: each is a range of the index. A condition on the
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
        -- One more, to know whether there are more.
        limit case when is_filtered then most_looked else max_rows end + 1
    loop
        if cardinality(listed) = max_rows or looked = most_looked then
            page.next_cursor := agui_internal.thread_cursor(last.active_at, last.thread_key);
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

comment on function agui.thread_page(text, boolean, text, timestamptz, text, jsonb, int, text, text) is
    'A page of the threads of a scope, newest activity first: up to max_rows (50, at most 1,000), behind the '
    'place that cursor names, the next_cursor of the page before. agent: of that agent. archived: only those '
    'that are, or are not (null: both). title: with this text in the title, in upper or lower case. since: '
    'active then or later. status: whose head is running, stale (running without a sign of life), finished or '
    'failed. metadata: whose metadata contains this. A page reads the threads that it shows, and the runs of '
    'each to count branches. With agent, title, status or metadata it looks at 10,000 threads at most: it may '
    'be short or empty, and has a next_cursor all the same where there are more. A thread that becomes active '
    'moves to the top. Pages that go on from a cursor show no thread twice, and do not show that one; the '
    'first page does, and since => active_at of the first thread seen. To list all threads as they are at one '
    'moment, read the pages in a REPEATABLE READ transaction. '
    'Errors: UI011 max_rows is over the limit, 22023 no such status, or not a cursor.';

revoke execute on function agui.thread_page(text, boolean, text, timestamptz, text, jsonb, int, text, text) from public;
