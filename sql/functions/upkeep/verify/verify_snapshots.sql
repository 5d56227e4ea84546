create or replace function agui_internal.verify_snapshots(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
security definer
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
-- In a large store the estimates are high, and compiling would take most of the time.
set jit = off
as $$
declare
    run        record;
    -- By run number: the last seq of a run whose lineage is complete, so that it can be folded.
    whole      bigint[] := '{}';
    wrong      int[] := '{}';
    difference text;
    -- the fold of the run folded_no at its end; its messages have the numbers in the snapshots
    fold       agui_internal.fold;
    folded_no  int;
    -- The runs behind it that wait to be folded together: each call looks at all messages so far.
    wait_nos   int[] := '{}';
    after_seqs bigint[];
    through_seqs bigint[];
    is_next    boolean;
begin
    thread_key := agui_internal.visible_key(thread_key);
    -- Ancestors come first. Each snapshot is compared with a fold that continues from that of the
    -- parent, or from a snapshot already proven. In total the whole log is folded from its
    -- beginning, and no part of it twice on one lineage.
    for run in
        select checked.run_id, checked.run_no, checked.parent_no, checked.first_seq, checked.last_seq, checked.status, snapshot.through_seq
        from agui.run as checked
        left join agui.snapshot as snapshot
            on snapshot.thread_key = checked.thread_key and snapshot.run_no = checked.run_no and snapshot.rules = agui_internal.rules()
        where checked.thread_key = verify_snapshots.thread_key
        order by checked.run_no
    loop
        if run.parent_no is null or run.parent_no < run.run_no and whole[run.parent_no] < run.first_seq then
            whole[run.run_no] := case when run.status = 'running' then 9223372036854775807 else run.last_seq end;
        end if;
        is_next := run.parent_no = coalesce(wait_nos[cardinality(wait_nos)], folded_no) and whole[run.run_no] is not null and run.status <> 'running';
        continue when run.through_seq is null and not coalesce(is_next, false);

        difference := null;
        if whole[run.run_no] is null then
            difference := 'the snapshot cannot be compared with the log: the lineage of the run is broken';
        elsif run.through_seq not between run.first_seq and whole[run.run_no] then
            difference := format('the snapshot goes through seq %s, the run from seq %s to seq %s',
                run.through_seq, run.first_seq, coalesce(run.last_seq::text, '(in progress)'));
        else
            begin
                if is_next then
                    wait_nos := wait_nos || run.run_no;
                    after_seqs := after_seqs[: cardinality(wait_nos) - 1] || run.first_seq - 1;
                    through_seqs := through_seqs[: cardinality(wait_nos) - 1] || coalesce(run.through_seq, run.last_seq);
                    continue when run.through_seq is null;
                    fold := agui_internal.fold_runs(fold, thread_key, wait_nos, after_seqs, through_seqs);
                else
                    fold := agui_internal.fold_run(
                        thread_key, run.run_no, run.through_seq,
                        agui_internal.fold_base(thread_key, run.run_no, run.through_seq, wrong || run.run_no)
                    );
                end if;
                folded_no := run.run_no;
                wait_nos := '{}';
                if run.through_seq is not null then
                    fold := agui_internal.fold_patched(fold);
                    difference := 'the snapshot is not what the log says: '
                        || agui_internal.snapshot_difference(thread_key, run.run_no, fold);
                    if difference is null then
                        fold.message_nos := coalesce(
                            agui_internal.snapshot_numbers(thread_key, run.run_no, cardinality(fold.bodies)), fold.message_nos
                        );
                    end if;
                    if run.through_seq < whole[run.run_no] then
                        folded_no := null;  -- the fold lacks the rest of the run
                    end if;
                end if;
            exception
                when others then
                    folded_no := null;
                    wait_nos := '{}';
                    if run.through_seq is not null then
                        difference := 'the snapshot cannot be compared with the log: ' || sqlerrm;
                    end if;
            end;
        end if;
        if difference is not null then
            wrong := wrong || run.run_no;
            return next (run.run_id, difference, 'damage')::agui.verify_row;
        end if;
    end loop;
end
$$;

comment on function agui_internal.verify_snapshots(uuid) is
    'The snapshots of a thread, by the present rules, that differ from a fold of its raw log, and '
    'the first difference of each.';

revoke execute on function agui_internal.verify_snapshots(uuid) from public;
