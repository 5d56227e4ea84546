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
    next_no int;
    run_nos int[];
    last_old_no int;
    carried agui_internal.carried_fold;
begin
    -- As compactors do: a writer of snapshots holds the row of the thread.
    perform from agui.thread as thread where thread.thread_key = key for no key update;
    if not found then
        -- raises an error if there is no such thread, unless only its row is missing
        perform agui_internal.find_run(thread_id, null, scope, true);
    end if;

    select * into damage from agui_internal.verify_log(key) as found where found.severity = 'damage' limit 1;
    if found then
        raise exception using
            errcode = 'UI015',
            message = format('thread "%s": its snapshots are not rebuilt because its log is damaged: %s%s',
                thread_id, 'run "' || damage.run_id || '": ', damage.problem),
            hint = 'A snapshot may hold what the log has lost. First restore the log from a backup; agui.verify lists all damage.';
    end if;

    -- New message versions get numbers after the old ones, which are deleted at the end. Otherwise
    -- every search for the last number would pass all deleted rows.
    last_old_no := (select max(message.message_no) from agui.message_version as message where message.thread_key = key);
    delete from agui.snapshot as snapshot where snapshot.thread_key = key;
    update agui.run as run set n = null, log_bytes = null where run.thread_key = key and run.log_bytes is not null;
    for next_no in
        select run.run_no
        from agui.run as run
        where run.thread_key = key and run.status <> 'running'
        order by run.run_no
    loop
        continue when exists (
            select from agui.run as done where done.thread_key = key and done.run_no = next_no and done.log_bytes is not null
        );
        run_nos := (agui_internal.sequence_to_compact(key, next_no, 'infinity', fold_bytes => carried.bytes)).run_nos;
        carried := agui_internal.compact_sequence(key, run_nos, carried);
    end loop;
    delete from agui.message_version as message where message.thread_key = key and message.message_no <= last_old_no;
    delete from agui_internal.job_note as note where note.thread_key = key;
    perform agui_internal.rebuild_activity(key);
    perform agui_internal.fill_title(key);
    return (select count(*) from agui.snapshot as snapshot where snapshot.thread_key = key);
end
$$;

comment on function agui.rebuild_snapshots(text, text) is
    'Deletes the snapshots and message versions of a thread, builds them from its log and returns '
    'the number of snapshots. The log is not changed. Also repairs the entry of the thread in '
    'lists. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key, UI015 the log is '
    'damaged, so nothing is changed, UI023 the fold exceeds a limit.';

revoke execute on function agui.rebuild_snapshots(text, text) from public;
