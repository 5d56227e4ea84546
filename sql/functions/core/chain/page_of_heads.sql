create or replace function agui_internal.page_of_heads(
    of_scope   text,
    after_key  uuid,
    page       int,
    out thread_key uuid,
    out scope  text,
    out thread_id text,
    out seq    bigint,
    out hash   bytea,
    out recorded_at timestamptz
)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select thread.thread_key, thread.scope, thread.thread_id, latest.first_seq + latest.n - 1, latest.hash, latest.recorded_at
    from agui.thread as thread
    cross join lateral (
        select batch.first_seq, batch.n, batch.hash, batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = thread.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest
    where thread.thread_key > after_key
        and (of_scope is null or thread.scope = of_scope)
        and latest.hash is not null
    order by thread.thread_key
    limit page
$$;

comment on function agui_internal.page_of_heads(text, uuid, int) is
    'Returns a page of the chained threads of a scope (null: of all scopes) after a key, in the '
    'order of their keys, with the seq and the time of the last event and the hash of the last link.';

revoke execute on function agui_internal.page_of_heads(text, uuid, int) from public;
