create or replace function agui_internal.last_activity_at(thread_key uuid)
returns timestamptz
language sql
stable
parallel safe
return coalesce(greatest(
    (
        select batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = last_activity_at.thread_key
        order by batch.first_seq desc
        limit 1
    ),
    (
        select max(known.saved_at)
        from agui.session_key as known
        where known.thread_key = last_activity_at.thread_key
    ),
    (
        select checkpoint.saved_at
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = last_activity_at.thread_key
        order by checkpoint.checkpoint_no desc
        limit 1
    )
), (
    select thread.created_at
    from agui.thread as thread
    where thread.thread_key = last_activity_at.thread_key
));

comment on function agui_internal.last_activity_at(uuid) is
    'The last time when something was appended to a thread, or session state or a checkpoint was '
    'saved in it; else the time when the thread was created. Null: there is no such thread.';

revoke execute on function agui_internal.last_activity_at(uuid) from public;
