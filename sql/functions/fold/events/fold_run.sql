create or replace function agui_internal.fold_run(
    thread_key uuid,
    run_no     int,
    at_seq     bigint default null,
    base_no    int default null,
    stop_at    timestamptz default null
)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    start    agui_internal.fold := agui_internal.load_snapshot(thread_key, base_no);
    until    bigint := coalesce(at_seq, 9223372036854775807);
    run_nos  int[];
    after_seqs   bigint[];
    through_seqs bigint[];
begin
    with recursive ancestor as (
        select run.thread_key, run.run_no, run.parent_no, run.first_seq, run.last_seq
        from agui.run as run
        where run.thread_key = fold_run.thread_key and run.run_no = fold_run.run_no
        union all
        select parent.thread_key, parent.run_no, parent.parent_no, parent.first_seq, parent.last_seq
        from ancestor
        -- The offset makes this one look-up for each, as in agui_internal.ancestors.
        cross join lateral (
            select older.*
            from agui.run as older
            where older.thread_key = ancestor.thread_key and older.run_no = ancestor.parent_no and older.run_no < ancestor.run_no
            offset 0
        ) as parent
        where ancestor.run_no is distinct from base_no
    )
    select
        array_agg(ancestor.run_no order by ancestor.run_no),
        array_agg(greatest(ancestor.first_seq - 1, start.through_seq) order by ancestor.run_no),
        array_agg(least(coalesce(ancestor.last_seq, until), until) order by ancestor.run_no)
    into run_nos, after_seqs, through_seqs
    from ancestor
    where ancestor.first_seq <= until
        and coalesce(ancestor.last_seq, until) > start.through_seq;

    if run_nos is null then
        return start;
    end if;
    return agui_internal.fold_patched(agui_internal.fold_runs(start, thread_key, run_nos, after_seqs, through_seqs, stop_at));
end
$$;

comment on function agui_internal.fold_run(uuid, int, bigint, int, timestamptz) is
    'Folds the lineage of a run up to at_seq (null: to its end), from the snapshot of the run '
    'base_no on its lineage (null: from the beginning of the log). agui_internal.fold_base finds '
    'the nearest base. From stop_at on (null: no limit) it ends within the run, as '
    'agui_internal.fold_events does.';

revoke execute on function agui_internal.fold_run(uuid, int, bigint, int, timestamptz) from public;
