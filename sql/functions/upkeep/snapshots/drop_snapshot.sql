create or replace function agui_internal.drop_snapshot(thread_key uuid, run_no int)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    dropped int4range[];
begin
    delete from agui.snapshot as snapshot
    where snapshot.thread_key = drop_snapshot.thread_key and snapshot.run_no = drop_snapshot.run_no
    returning snapshot.message_nos into dropped;
    if found then
        perform agui_internal.delete_unused_messages(thread_key, dropped);
    end if;
end
$$;

comment on function agui_internal.drop_snapshot(uuid, int) is
    'Deletes the snapshot of a run, if it has one, with the message versions that no other '
    'snapshot holds. The caller holds the row of the thread.';

revoke execute on function agui_internal.drop_snapshot(uuid, int) from public;
