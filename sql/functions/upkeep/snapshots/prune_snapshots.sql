create or replace function agui_internal.prune_snapshots(thread_key uuid, from_no int default 1)
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    tip     int;
    run_no  int;
    dropped int := 0;
begin
    perform agui_internal.own_key(thread_key);
    perform from agui.thread as thread where thread.thread_key = prune_snapshots.thread_key for no key update skip locked;
    if not found then
        return 0;  -- the holder may be compacting it, and its snapshots stay
    end if;
    -- Not "max", for which a plan may read all of them.
    select run.run_no into tip
    from agui.run
    where run.thread_key = prune_snapshots.thread_key and run.status <> 'running'
    order by run.run_no desc
    limit 1;
    -- Ancestors first: when one is dropped, more log counts for those that follow.
    for run_no in
        select run.run_no
        from agui.snapshot as snapshot
        join agui.run as run
            on run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no
        where snapshot.thread_key = prune_snapshots.thread_key
            and snapshot.run_no >= from_no
            and run.run_no <> tip
            and run.log_bytes is not null
        order by run.run_no
    loop
        if agui_internal.drop_needless_snapshot(thread_key, run_no) then
            dropped := dropped + 1;
        end if;
    end loop;
    return dropped;
end
$$;

comment on function agui_internal.prune_snapshots(uuid, int) is
    'Drops the snapshots of a thread that no longer pay after the log of the run from_no, and of others '
    'after it, became smaller (agui.repack). Programs of earlier versions give no run: all are weighed. '
    'Returns how many.';

revoke execute on function agui_internal.prune_snapshots(uuid, int) from public;
