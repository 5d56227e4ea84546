create or replace function agui.has_news(thread_key uuid, since timestamptz)
returns boolean
language sql
stable
parallel safe
return since is null
    or (
        select batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = has_news.thread_key
        order by batch.first_seq desc
        limit 1
    ) >= since
    or exists (
        select
        from agui.snapshot as snapshot
        where snapshot.thread_key = has_news.thread_key and snapshot.created_at >= since
    );

comment on function agui.has_news(uuid, timestamptz) is
    'Whether events were appended to a thread, or snapshots of it made, at a time or later; null: always.';

revoke execute on function agui.has_news(uuid, timestamptz) from public;
