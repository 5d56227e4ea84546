create or replace function agui_internal.fold_base(thread_key uuid, run_no int, at_seq bigint default null, distrusted int[] default '{}')
returns int
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    thread_key := agui_internal.visible_key(thread_key);
    -- In PL/pgSQL the plan is cached. Planning takes several times as long as execution.
    return (
        with recursive ancestor as (
            select run.thread_key, run.run_no, run.parent_no, snapshot.run_no is not null as is_base
            from agui.run as run
            left join agui.snapshot as snapshot
                on snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no and snapshot.rules = agui_internal.rules()
                    and (fold_base.at_seq is null or snapshot.through_seq <= fold_base.at_seq)
                    and snapshot.run_no <> all (fold_base.distrusted)
            where run.thread_key = fold_base.thread_key and run.run_no = fold_base.run_no
            union all
            select parent.thread_key, parent.run_no, parent.parent_no, snapshot.run_no is not null
            from ancestor
            join agui.run as parent
                on parent.thread_key = ancestor.thread_key and parent.run_no = ancestor.parent_no and parent.run_no < ancestor.run_no
            left join agui.snapshot as snapshot
                on snapshot.thread_key = parent.thread_key and snapshot.run_no = parent.run_no and snapshot.rules = agui_internal.rules()
                    and (fold_base.at_seq is null or snapshot.through_seq <= fold_base.at_seq)
                    and snapshot.run_no <> all (fold_base.distrusted)
            where not ancestor.is_base
        )
        select ancestor.run_no from ancestor where ancestor.is_base
    );
end
$$;

comment on function agui_internal.fold_base(uuid, int, bigint, int[]) is
    'The nearest run on the lineage of a run, itself included, with a snapshot that ends at or '
    'before at_seq (null: any snapshot); null if there is none. Snapshots of the runs in '
    'distrusted are skipped.';

revoke execute on function agui_internal.fold_base(uuid, int, bigint, int[]) from public;
