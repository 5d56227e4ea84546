create or replace function agui.verify(thread_id text, scope text default '')
returns setof agui.verify_row
language plpgsql
stable
security definer
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid;
begin
    for key in
        select * from agui_internal.thread_keys(thread_id, scope)
    loop
        return query select * from agui_internal.verify_log(key);
        begin
            return query select * from agui_internal.verify_references(key);
        exception
            when others then
                return next (null, 'snapshots and messages cannot be read: ' || sqlerrm, 'damage')::agui.verify_row;
        end;
        return query select * from agui_internal.verify_snapshots(key);
    end loop;
    if not found then
        perform agui_internal.find_run(thread_id, null, scope, true);  -- raises an error if there is no such thread
    end if;
end
$$;

comment on function agui.verify(text, text) is
    'Checks a thread for damage, as git fsck does for a repository: its log (seqs, batches, bounds '
    'and life cycles of runs), the tree of its runs, and every snapshot, compared with a fold of '
    'the raw log. Returns one row for each problem and no row if all is well. severity '
    'distinguishes damage from notes. Notes are events after the end of a run, a second or missing '
    'RUN_STARTED, and a RUN_STARTED that differs from what its writer gave. agui.rebuild_snapshots '
    'repairs damaged snapshots. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.verify(text, text) from public;
