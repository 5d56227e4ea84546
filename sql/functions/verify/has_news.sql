create or replace function agui.has_news(thread_key uuid, since timestamptz)
returns boolean
language sql
stable
parallel safe
return since is null
    or agui.last_news(has_news.thread_key) >= since
    or exists (
        select
        from agui.snapshot as snapshot
        where snapshot.thread_key = has_news.thread_key and snapshot.created_at >= since
    );

comment on function agui.has_news(uuid, timestamptz) is
    'Whether something was appended to a thread or saved in it, or snapshots of it made, at a time or later; null: always.';

revoke execute on function agui.has_news(uuid, timestamptz) from public;
