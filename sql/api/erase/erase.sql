create or replace function agui.erase(thread_id text, reason text default null, scope text default '')
returns agui.erasure
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    erasure agui.erasure := agui_internal.erase_thread(agui_internal.key_to_change(thread_id, scope), reason);
begin
    if erasure.erased_key is null then
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, case when scope <> '' then format(' in scope "%s"', scope) else '' end),
            hint = 'Is it in another scope?';
    end if;
    return erasure;
end
$$;

comment on function agui.erase(text, text, text) is
    'Removes a thread for good: its log, runs, snapshots, session state and checkpoints, all or nothing. What '
    'is left is a row in agui.erasure, without the name of the thread, which is returned; while it stands, appends to '
    'the thread, and whatever saves something in it, fail with UI014 (agui.lift_erasure lifts that). Takes the '
    'rights of agui_maintainer. The space is free for other threads after the next vacuum; statistics, logs, '
    'standbys, backups and WAL archives hold parts of the thread for a while (docs/erasure.md). '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.erase(text, text, text) from public;
