create or replace function agui_internal.note_run_begun(
    thread_key uuid,
    active_at  timestamptz,
    events     json,
    input      json default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- null: the thread has no row yet
    is_titled constant boolean := agui_internal.note_activity(thread_key, active_at);
    derived   text;
begin
    if is_titled then
        return;
    end if;

    -- Parse the input only now, because it is expensive.
    derived := coalesce(agui_internal.title_of_input(events, input), agui_internal.title_of_events(events));
    if is_titled is null or derived is not null then
        insert into agui.thread_activity (thread_key, scope_key, active_at, derived_title)
        values (
            note_run_begun.thread_key, agui_internal.scope_key(note_run_begun.thread_key),
            note_run_begun.active_at, derived
        )
        on conflict on constraint thread_activity_pkey do update
        set active_at = excluded.active_at,
            derived_title = excluded.derived_title;
    end if;
end
$$;

comment on function agui_internal.note_run_begun(uuid, timestamptz, json, json) is
    'Moves a thread to its place in lists when a run of it begins, given the events that begin it '
    'and the input stored beside them. Derives the title of the thread from the input or the events while it has '
    'none. The caller holds the lock of the thread and has created its row.';

revoke execute on function agui_internal.note_run_begun(uuid, timestamptz, json, json) from public;
