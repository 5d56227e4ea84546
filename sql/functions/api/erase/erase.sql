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
    'Removes a thread permanently: its log, runs, snapshots, session state, checkpoints and '
    'claims, in one transaction. Returns the row that remains in agui.erasure, which does not '
    'contain the name of the thread. While that row stands, every write to the thread fails with '
    'UI014; agui.lift_erasure permits writes. Requires agui_maintainer. The space is reusable '
    'after the next vacuum. Statistics, server logs, standbys, backups and WAL archives still '
    'contain parts of the thread for some time (docs/erasure.md). '
    'Errors: UI001 unknown thread, UI012 another thread has the same key, UI025 the thread is held.';

revoke execute on function agui.erase(text, text, text) from public;
