create or replace function agui.threads_without_news(older_than interval, scope text default null, after uuid default null)
returns setof agui.erasable
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select thread.thread_key, thread.scope, thread.thread_id, news.news_at, coalesce(latest.last_seq, 0)
    from agui.thread as thread
    cross join lateral (select agui.last_news(thread.thread_key)) as news (news_at)
    left join lateral (
        select batch.first_seq + batch.n - 1 as last_seq
        from agui.batch as batch
        where batch.thread_key = thread.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest on true
    where thread.created_at < now() - older_than
        and news.news_at < now() - older_than
        and (threads_without_news.scope is null or thread.scope = threads_without_news.scope)
        and (threads_without_news.after is null or thread.thread_key > threads_without_news.after)
    order by thread.thread_key
$$;

comment on function agui.threads_without_news(interval, text, uuid) is
    'The threads, of one scope or (null) of all, to which nothing was appended, and in which nothing was saved, for older_than, in the order of their keys, '
    'behind the key after. What agui.erase_older erases.';

revoke execute on function agui.threads_without_news(interval, text, uuid) from public;
