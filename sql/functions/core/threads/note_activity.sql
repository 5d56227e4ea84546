-- Each update leaves an old version of the row with its index entries, which cannot be pruned
-- before the transaction commits, and every look-up of the row passes them. So a transaction
-- updates it max_writes times, and a last time when it commits.
create or replace function agui_internal.note_activity(thread_key uuid, active_at timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    max_writes constant int := 8;  -- the same number as in the trigger
    transaction constant xid8 := pg_current_xact_id();
    is_titled boolean;
begin
    update agui.thread_activity as activity
    set active_at = note_activity.active_at,
        written_in = transaction,
        writes = case when activity.written_in = transaction then activity.writes + 1 else 1 end
    where activity.thread_key = note_activity.thread_key
        and (activity.written_in = transaction and activity.writes = max_writes) is not true
    returning activity.derived_title is not null into is_titled;
    if not found then
        select activity.derived_title is not null into is_titled
        from agui.thread_activity as activity
        where activity.thread_key = note_activity.thread_key;
    end if;
    return is_titled;
end
$$;

comment on function agui_internal.note_activity(uuid, timestamptz) is
    'Moves a thread to its place in lists when a run of it has begun or ended. Returns whether a '
    'title was derived for it; null: it is in no list yet. The caller holds the lock of the '
    'thread.';

revoke execute on function agui_internal.note_activity(uuid, timestamptz) from public;
