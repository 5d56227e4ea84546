create or replace function agui_internal.state_at(run agui.run, at_seq bigint, at_time timestamptz default null)
returns agui_internal.fold
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    until constant bigint := agui_internal.seq_at(run.thread_key, at_seq, at_time);
    fold  agui_internal.fold;
begin
    if run.status <> 'running' and (until is null or until >= run.last_seq) then
        select snapshot.through_seq, snapshot.state::text, snapshot.interrupts::text, snapshot.lanes::text
        into fold.through_seq, fold.state, fold.interrupts, fold.lanes
        from agui.snapshot as snapshot
        where snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no and snapshot.through_seq >= run.last_seq
            and snapshot.rules = agui_internal.rules();
        if found then
            return fold;
        end if;
    end if;
    return agui_internal.fold_at(run, until);
end
$$;

comment on function agui_internal.state_at(agui.run, bigint, timestamptz) is
    'agui_internal.fold_at for a read of the state, the interrupts or the open chunk streams: without '
    'the messages, where a snapshot has the rest.';

revoke execute on function agui_internal.state_at(agui.run, bigint, timestamptz) from public;
