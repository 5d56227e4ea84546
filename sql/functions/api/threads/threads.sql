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

comment on function agui.threads(text, boolean, text, timestamptz, text, boolean, jsonb, int, text, text) is
    'Returns the threads of agui.thread_page as rows, most recent activity first. To continue '
    'after a row, pass its cursor. A filter can make a page short; only agui.thread_page then '
    'shows whether more follow. '
    'Errors: UI011 max_rows is out of range, 22023 unknown status or invalid cursor.';

revoke execute on function agui.threads(text, boolean, text, timestamptz, text, boolean, jsonb, int, text, text) from public;
