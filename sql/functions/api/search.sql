-- role: maintainer; route: each node
create or replace function agui.disable_search()
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was_on boolean;
begin
    perform agui_internal.refuse_unless_operator('turn search off');
    delete from agui_internal.search;
    was_on := found;
    truncate agui.message_text;
    return was_on;
end
$$;

comment on function agui.disable_search is
    'Turns agui.search off and removes what it needs. Returns whether it was on. Requires agui_maintainer. '
    'Errors: 42501 the role has not all scopes.';

-- role: maintainer; route: each node
create or replace function agui.enable_search(language text default 'simple')
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('turn search on');
    if enable_search.language is null or not exists (
        select
        from pg_ts_config as config
        join pg_namespace as namespace on namespace.oid = config.cfgnamespace
        where enable_search.language = format('%I.%I', namespace.nspname, config.cfgname)
            or namespace.nspname = 'pg_catalog' and enable_search.language = config.cfgname
    ) then
        raise exception using
            errcode = '22023',
            message = format('"%s" is not a text search configuration', enable_search.language),
            hint = format(
                'There are %s; one of your own is named with its schema.',
                (select string_agg(cfgname, ', ' order by cfgname) from pg_ts_config where cfgnamespace = 'pg_catalog'::regnamespace)
            );
    end if;
    -- A step of the job in progress ends first.
    delete from agui_internal.projection;
    truncate agui.message_text;
    insert into agui_internal.search as search (language)
    values (enable_search.language)
    on conflict (is_only) do update
    set language = excluded.language, enabled_at = excluded.enabled_at;
end
$$;

comment on function agui.enable_search is
    'Turns agui.search on, or changes its language, a text search configuration such as english (simple: '
    'words as they are). The next calls of agui.project() index the texts of all messages; they take about '
    'as much space as the log. Requires agui_maintainer. '
    'Errors: 22023 unknown language, 42501 the role has not all scopes.';

-- A run that cannot be folded has no texts.
-- route: merged; never: UI022, UI023
create or replace function agui.search(
    query    text,
    role     text default null,
    since    timestamptz default null,
    max_rows int default 20,
    cursor   text default null,
    marks    text[] default '{**,**}',
    scope    text default null
)
returns setof agui.found_text
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
set client_min_messages = warning  -- not one for each word that is left out
set extra_float_digits = 1  -- so that the rank in a cursor is the rank
as $$
#variable_conflict use_column
declare
    -- A word that most texts have would take a second for each ten thousand of them.
    most_ranked constant int := 10000;
    language regconfig;
    wanted   tsquery;
    within   tsquery;
    parts    text[] := string_to_array(cursor, ' ');
    last     record;
    own      record;
begin
    select search.language::regconfig into language from agui_internal.search as search;
    if not found then
        raise exception using
            errcode = 'UI026',
            message = 'search is off: texts of messages are not indexed',
            hint = 'agui.enable_search(language) turns it on, and the next call of agui.project() indexes what there is.';
    end if;
    if max_rows is null or max_rows not between 1 and 1000 then
        raise exception using
            errcode = 'UI011',
            message = format('search: max_rows must be between 1 and 1000, not %s', coalesce(max_rows::text, 'null'));
    end if;
    if search.role not in ('user', 'assistant', 'tool') then
        raise exception using
            errcode = '22023',
            message = format('search: role must be user, assistant or tool, not "%s"', left(search.role, 100));
    end if;
    begin
        select parts[1]::real as rank, parts[2]::bigint as said_us, parts[3]::uuid as thread_key, parts[4]::bigint as print into last;
        if cardinality(parts) <> 4 then
            raise data_exception;
        end if;
    exception
        when data_exception then
            raise exception using
                errcode = '22023',
                message = format('search: "%s" is not a cursor', left(cursor, 100)),
                hint = 'Use the cursor of a row of agui.search.';
    end;
    -- PostgreSQL takes the square of it to read a query.
    if octet_length(search.query) > 10000 then
        raise exception using
            errcode = '22023',
            message = format('search: the query has %s bytes, more than 10000', octet_length(search.query));
    end if;
    begin
        wanted := websearch_to_tsquery(language, search.query);
    exception
        when internal_error or program_limit_exceeded then
            raise exception using
                errcode = '22023',
                message = 'search: the query has too many "-" or parts',
                detail = sqlerrm;
    end;
    -- Each text that is shown takes time for each of them: 0.1 s with 800.
    if numnode(wanted) > 200 then
        raise exception using
            errcode = '22023',
            message = format('search: the query has %s words and operators, more than 200', numnode(wanted)),
            hint = 'Search for fewer words.';
    end if;
    if numnode(wanted) = 0 then
        return;  -- no word, or only those that the language leaves out
    end if;
    select * into own from agui_internal.own_keys_in(search.scope);
    if (own.low <= own.high) is not true then
        return;  -- before the index is read: the time would tell how often others said it
    end if;
    within := wanted;
    if agui_internal.scope_key(own.low) = agui_internal.scope_key(own.high) then
        within := within && tsquery(quote_literal(agui_internal.word_of('scope', agui_internal.scope_key(own.low)::text)));
    end if;
    if search.role is not null then
        within := within && tsquery(quote_literal(agui_internal.word_of('role', search.role)));
    end if;

    return query
    with newest as materialized (
        select stored.thread_key, stored.print, stored.said_at
        from agui.message_text as stored
        where stored.words @@ within
            and stored.thread_key >= own.low and stored.thread_key <= own.high
            and (search.since is null or stored.said_at >= search.since)
        order by stored.said_at desc, stored.thread_key, stored.print
        limit most_ranked + 1
    ),
    ranked as materialized (
        select * from newest order by newest.said_at desc, newest.thread_key, newest.print limit most_ranked
    )
    select
        thread.scope, thread.thread_id, run.run_id, found.message_id, found.role, found.seq, found.said_at, found.rank,
        ts_headline(
            language, found.text, wanted,
            format('StartSel=%s, StopSel=%s, MaxFragments=2, MinWords=6, MaxWords=20, FragmentDelimiter=" … "', quote_ident(coalesce(marks[1], '')), quote_ident(coalesce(marks[2], '')))
        ),
        format('%s %s %s %s', found.rank, found.said_us, found.thread_key, found.print),
        (select min(ranked.said_at) from ranked where (select count(*) from newest) > most_ranked)
    from (
        select stored.*, place.rank, place.said_us
        from ranked
        join agui.message_text as stored on stored.thread_key = ranked.thread_key and stored.print = ranked.print
        cross join lateral (
            select ts_rank(stored.words, wanted, 1) as rank, (extract(epoch from stored.said_at) * 1000000)::bigint as said_us
            offset 0  -- computed once
        ) as place
        where cursor is null
            or (-place.rank, -place.said_us, stored.thread_key, stored.print) > (-last.rank, -last.said_us, last.thread_key, last.print)
        order by place.rank desc, stored.said_at desc, stored.thread_key, stored.print
        limit max_rows
    ) as found
    join agui.thread as thread on thread.thread_key = found.thread_key
    join agui.run as run on run.thread_key = found.thread_key and run.run_no = found.run_no
    order by found.rank desc, found.said_at desc, found.thread_key, found.print;
end
$$;

comment on function agui.search is
    'Returns the messages whose texts match a query, the best first: words, "words in order", or, -not '
    '(websearch_to_tsquery). Searches the texts of users, assistants and tools of all branches, as of the '
    'last call of agui.project(). role, since: only those. cursor: of the last row, to go on. marks: what '
    'to write before and behind a word that matches in the snippet (a text may contain them, too). scope: '
    'only of a scope (null: all that the role sees). If more than 10,000 match, the newest 10,000 are ranked, and '
    'searched_to says how far back they go. '
    'Errors: UI026 search is off, UI011 max_rows is not from 1 to 1000, 22023 not a cursor or a role, or the '
    'query is too long (10000 bytes, 200 words and operators).';
