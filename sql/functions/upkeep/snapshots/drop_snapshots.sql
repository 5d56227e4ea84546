create or replace function agui_internal.drop_snapshots(thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unused int4range[];
begin
    perform agui_internal.own_key(thread_key);
    with dropped as (
        delete from agui.snapshot as snapshot
        where snapshot.thread_key = drop_snapshots.thread_key and snapshot.run_no = any (run_nos)
            -- So that no plan reads all snapshots of the thread.
            and snapshot.run_no >= (select min(number) from unnest(run_nos) as number)
            and snapshot.run_no <= (select max(number) from unnest(run_nos) as number)
        returning snapshot.message_nos
    )
    select array_agg(part) into unused from dropped cross join unnest(dropped.message_nos) as part;
    perform agui_internal.delete_unused_messages(thread_key, unused);
end
$$;

comment on function agui_internal.drop_snapshots(uuid, int[]) is
    'Drops the snapshots of some runs, for example those made while the runs were in progress, with '
    'the message versions that no other snapshot holds. The caller holds the row of the thread.';

revoke execute on function agui_internal.drop_snapshots(uuid, int[]) from public;
