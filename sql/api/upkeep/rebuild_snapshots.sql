create or replace function agui.rebuild_snapshots(thread_id text, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key    uuid := agui_internal.key_to_change(thread_id, scope);
    damage agui.verify_row;
    run_no int;
    last_old_no int;
    carried agui_internal.carried_fold;
begin
    -- As compactors do: whoever writes snapshots of the thread holds its row.
    perform from agui.thread as thread where thread.thread_key = key for no key update;
    if not found then
        perform agui_internal.find_run(thread_id, null, scope);  -- says that there is no such thread, unless only its row is missing
    end if;

    select * into damage from agui_internal.verify_log(key) as found where found.severity = 'damage' limit 1;
    if found then
        raise exception using
            errcode = 'UI015',
            message = format('the snapshots of thread "%s" stay as they are, for its log is damaged: %s%s',
                thread_id, 'run "' || damage.run_id || '": ', damage.problem),
            hint = 'A snapshot may hold what the log has lost. Put the log right first, from a backup; agui.verify names all that is wrong.';
    end if;

    -- The new versions of messages get numbers behind the old ones, which go in the end: a search for the last number would meet each
    -- deleted row again and again.
    last_old_no := (select max(message.message_no) from agui.message as message where message.thread_key = key);
    delete from agui.snapshot as snapshot where snapshot.thread_key = key;
    update agui.run as run set n = null, log_bytes = null where run.thread_key = key and run.log_bytes is not null;
    for run_no in
        select run.run_no
        from agui.run as run
        where run.thread_key = key and run.status <> 'running'
        order by run.run_no
    loop
        carried := agui_internal.compact_run(key, run_no, carried);
    end loop;
    delete from agui.message as message where message.thread_key = key and message.message_no <= last_old_no;
    delete from agui_internal.job_note as note where note.thread_key = key;
    perform agui_internal.rebuild_activity(key);
    perform agui_internal.fill_title(key);
    return (select count(*) from agui.snapshot as snapshot where snapshot.thread_key = key);
end
$$;

comment on function agui.rebuild_snapshots(text, text) is
    'Deletes the snapshots and message versions of a thread and makes them again from its log, which stays as '
    'it is; answers how many snapshots it has now. Puts right the place of the thread in lists, too. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key, UI015 the log itself is damaged, so '
    'nothing is touched, UI023 the fold is over a limit.';

revoke execute on function agui.rebuild_snapshots(text, text) from public;
