create or replace function agui_internal.has_activity_since(thread_key uuid, since timestamptz)
returns boolean
language sql
stable
parallel safe
return since is null
    or agui_internal.last_activity_at(has_activity_since.thread_key) >= since
    or exists (
        select
        from agui.snapshot as snapshot
        where snapshot.thread_key = has_activity_since.thread_key and snapshot.created_at >= since
    );

comment on function agui_internal.has_activity_since(uuid, timestamptz) is
    'Whether something was appended or saved in a thread, or snapshots of it were made, at or '
    'after a time; null: always.';

revoke execute on function agui_internal.has_activity_since(uuid, timestamptz) from public;
