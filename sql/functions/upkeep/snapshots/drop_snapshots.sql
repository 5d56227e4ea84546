create or replace function agui_internal.drop_snapshots(thread_key uuid, run_nos int[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    perform agui_internal.drop_snapshot(snapshot.thread_key, snapshot.run_no)
    from agui.snapshot as snapshot
    where snapshot.thread_key = drop_snapshots.thread_key and snapshot.run_no = any (run_nos)
        -- So that no plan reads all snapshots of the thread.
        and snapshot.run_no >= (select min(number) from unnest(run_nos) as number)
        and snapshot.run_no <= (select max(number) from unnest(run_nos) as number);
end
$$;

comment on function agui_internal.drop_snapshots(uuid, int[]) is
    'Drops the snapshots of some runs, for example those made while the runs were in progress. The '
    'caller holds the row of the thread.';

revoke execute on function agui_internal.drop_snapshots(uuid, int[]) from public;
