create or replace function agui_internal.fold_at(run agui.run, at_seq bigint)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return agui_internal.fold_run(run.thread_key, run.run_no, at_seq, agui_internal.fold_base(run.thread_key, run.run_no, at_seq));
end
$$;

comment on function agui_internal.fold_at(agui.run, bigint) is
    'What the lineage of a run means at a seq (null: at the end), from the nearest snapshot on.';

revoke execute on function agui_internal.fold_at(agui.run, bigint) from public;
