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
        perform agui_internal.find_run(thread_id, null, scope);  -- says that there is no such thread
    end if;
end
$$;

comment on function agui.verify(text, text) is
    'Checks a thread like git fsck: its log (seqs, batches, bounds and life cycles of runs), the tree of its '
    'runs, and every snapshot against a fold of the raw log. One row a problem, no row when all is well; '
    'severity tells damage from notes: events behind the end of a run, a second RUN_STARTED or a missing '
    'first one, and what RUN_STARTED says otherwise than its writer. agui.rebuild_snapshots puts right what '
    'is wrong with snapshots. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.verify(text, text) from public;
