create or replace function agui.get_thread(thread_id text, scope text default '')
returns agui.thread_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key    constant uuid := agui_internal.checked_thread_key(thread_id, scope);
    thread agui.thread_row;
begin
    select shown.* into thread
    from agui.thread_activity as activity
    cross join agui_internal.show_threads(array[activity], scope) as shown
    where activity.thread_key = key;
    if not found then
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, ' in scope "' || nullif(scope, '') || '"'),
            hint = 'Is it in another scope?';
    end if;
    return thread;
end
$$;

comment on function agui.get_thread is
    'Returns a thread as agui.threads shows it. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

-- route: merged
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

comment on function agui.list_runs is
    'Returns the runs of all threads of a scope that ended with one of these statuses (default: '
    'failed and cut_off; also cancelled and interrupted, answered or not; null: all four), at or after since, the '
    'last one first: up to max_rows (default 50, at most 1,000). To continue after a run, pass its '
    'cursor; fewer rows than max_rows are the last ones. A page reads the runs that it shows, and of '
    'each the batch with its end. '
    'Errors: UI011 max_rows is out of range, 22023 unknown status or invalid cursor.';

-- role: writer
create or replace function agui.set_thread(
    thread_id text,
    title     text default null,
    agent     text default null,
    archived  boolean default null,
    metadata  jsonb default null,
    create_if_missing boolean default false,
    scope     text default ''
)
returns agui.thread_row
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_text_bytes     constant int := 1024;
    max_metadata_bytes constant int := 64 * 1024;
    subject constant text := format('thread "%s"', left(thread_id, 200));
    key     constant uuid := agui_internal.key_to_change(thread_id, scope);
    shown   agui.thread_activity;
    thread  agui.thread_row;
begin
    if greatest(octet_length(title), octet_length(agent)) > max_text_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: title and agent are limited to %s bytes each', subject, to_char(max_text_bytes, 'FM9,999'));
    end if;
    if jsonb_typeof(metadata) <> 'object' then
        raise exception using
            errcode = '22023',
            message = format('%s: metadata must be a JSON object, not %s', subject, jsonb_typeof(metadata));
    end if;

    -- The same order as in agui.append: first the lock, then the row.
    perform agui_internal.lock_thread(key);
    if create_if_missing then
        perform agui_internal.ensure_writable_thread(thread_id, scope);
    else
        perform from agui.thread as known where known.thread_key = key;
        if not found then
            raise exception using
                errcode = 'UI001',
                message = format('%s is unknown%s', subject, ' in scope "' || nullif(scope, '') || '"'),
                hint = 'Is it in another scope? To create a thread without runs, pass create_if_missing => true.';
        end if;
    end if;

    -- If the row is missing, which is damage, create it.
    perform from agui.thread_activity as activity where activity.thread_key = key;
    if not found then
        perform agui_internal.rebuild_activity(key);
    end if;

    update agui.thread_activity as activity
    set title = case when set_thread.title is null then activity.title else nullif(set_thread.title, '') end,
        agent = case when set_thread.agent is null then activity.agent else nullif(set_thread.agent, '') end,
        archived = coalesce(set_thread.archived, activity.archived),
        metadata = case
            when set_thread.metadata is null then activity.metadata
            else (
                select coalesce(jsonb_object_agg(member.key, member.value), '{}')
                from jsonb_each(activity.metadata || set_thread.metadata) as member (key, value)
                where set_thread.metadata -> member.key is distinct from 'null'
            )
        end
    where activity.thread_key = key
    returning activity.* into shown;
    if octet_length(shown.metadata::text) > max_metadata_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: its metadata would have %s bytes, more than the limit of %s',
                subject, octet_length(shown.metadata::text), max_metadata_bytes),
            hint = 'Every list returns the metadata. Store large values elsewhere and put a reference here.';
    end if;

    select * into thread from agui_internal.show_threads(array[shown], scope);
    return thread;
end
$$;

comment on function agui.set_thread is
    'Sets what lists show of a thread and returns the thread as agui.threads shows it. title and '
    'agent: an empty text clears them. archived: whether the thread is archived. metadata: a JSON object that '
    'is merged into the stored one, at the top level only; the last write wins, and null removes a '
    'member. An argument of null changes nothing. The call is not an activity, so the thread keeps '
    'its place in lists. create_if_missing => true creates a thread without runs. Until the '
    'transaction ends, other writers wait for the thread. '
    'Errors: UI001 unknown thread, UI008 no thread id or scope, UI011 title or agent over 1,024 '
    'bytes, metadata over 64 KB, UI012 another thread has the same key, UI014 the thread was '
    'erased, 22023 metadata is not an object.';

-- route: merged
create or replace function agui.threads(
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
returns setof agui.thread_row
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select thread.*
    from agui.thread_page(
        threads.agent, threads.archived, threads.title, threads.since, threads.status, threads.head_only, threads.metadata,
        threads.max_rows, threads.cursor, threads.scope
    ) as page
    cross join unnest(page.threads) as thread
$$;

comment on function agui.threads is
    'Returns the threads of agui.thread_page as rows, most recent activity first. To continue '
    'after a row, pass its cursor. A filter can make a page short; only agui.thread_page then '
    'shows whether more follow. '
    'Errors: UI011 max_rows is out of range, 22023 unknown status or invalid cursor.';

-- route: merged
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

comment on function agui.thread_page is
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
