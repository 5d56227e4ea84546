create or replace function agui.verify_snapshots(thread_key uuid)
returns setof agui.problem
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    item     record;
    stored   agui.fold;
    replayed agui.fold;
    wrong    int[] := '{}';
    found_wrong agui.problem;
    difference  text;
begin
    -- Ancestors come first, so each snapshot is compared with a fold that starts from one already proven: in sum the whole log
    -- is folded from its beginning, and no part of it twice on one lineage.
    for item in
        select run.run_id, run.run_no, run.parent_no, run.last_seq, snapshot.through_seq
        from agui.snapshot as snapshot
        join agui.run as run
            on run.thread_key = snapshot.thread_key and run.run_no = snapshot.run_no
        where snapshot.thread_key = verify_snapshots.thread_key
        order by run.run_no
    loop
        stored := agui.load_snapshot(thread_key, item.run_no);
        replayed := agui.fold_run(
            thread_key, item.run_no, item.through_seq,
            agui.fold_base(thread_key, item.run_no, item.through_seq, wrong || item.run_no)
        );
        difference := agui.fold_difference(stored, replayed);
        if difference is not null then
            wrong := wrong || item.run_no;
            found_wrong.run_id := item.run_id;
            found_wrong.problem := 'the snapshot is not what the log says: ' || difference;
            return next found_wrong;
        end if;
    end loop;
end
$$;

comment on function agui.verify_snapshots(uuid) is 'Which snapshots of a thread are not what a fold of its raw log gives, and in what.';

revoke execute on function agui.verify_snapshots(uuid) from public;
