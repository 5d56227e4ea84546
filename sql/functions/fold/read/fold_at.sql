create or replace function agui_internal.fold_at(run agui.run, at_seq bigint, at_time timestamptz default null)
returns agui_internal.fold
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    until constant bigint := agui_internal.seq_at(run.thread_key, at_seq, at_time);
    fold  agui_internal.fold;
begin
    -- Once down a long lineage, not in each step that follows.
    if until < run.first_seq then
        run := agui_internal.run_at(run, until);
    end if;
    -- Usually a run that has ended has a snapshot of all of it, or none.
    if run.status <> 'running' and (until is null or until >= run.last_seq) then
        fold := agui_internal.load_snapshot(run.thread_key, run.run_no);
        if fold.through_seq >= run.last_seq then
            return fold;
        end if;
    end if;
    perform agui_internal.refuse_quarantined(run, until);
    return agui_internal.fold_run(run.thread_key, run.run_no, until, agui_internal.fold_base(run.thread_key, run.run_no, until));
end
$$;

comment on function agui_internal.fold_at(agui.run, bigint, timestamptz) is
    'Folds the lineage of a run up to a seq or a point in time, the earlier of the two (null: to '
    'the end), from the nearest snapshot.';

revoke execute on function agui_internal.fold_at(agui.run, bigint, timestamptz) from public;
