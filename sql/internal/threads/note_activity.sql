create or replace function agui_internal.note_activity(thread_key uuid, active_at timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    update agui.thread_activity as activity
    set active_at = note_activity.active_at
    where activity.thread_key = note_activity.thread_key;
end
$$;

comment on function agui_internal.note_activity(uuid, timestamptz) is
    'Moves a thread to its place in lists when a run of it has ended. The caller holds the '
    'thread''s lock.';

revoke execute on function agui_internal.note_activity(uuid, timestamptz) from public;
