create or replace function agui_internal.settle_activity()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update agui.thread_activity as activity
    set active_at = greatest(activity.active_at, (
            select batch.recorded_at
            from agui.batch as batch
            where batch.thread_key = new.thread_key
            order by batch.first_seq desc
            limit 1
        )),
        written_in = null,
        writes = 0
    where activity.thread_key = new.thread_key and activity.written_in = new.written_in;
    return null;
end
$$;

comment on function agui_internal.settle_activity() is
    'Trigger: sets the place of a thread in lists to the time of its last event when a transaction '
    'commits that began and ended many runs of it and therefore skipped some updates '
    '(agui_internal.note_activity).';

revoke execute on function agui_internal.settle_activity() from public;

create constraint trigger settle_activity
    after update on agui.thread_activity
    deferrable initially deferred
    for each row
    when (old.writes = 7 and new.writes = 8)
    execute function agui_internal.settle_activity();
