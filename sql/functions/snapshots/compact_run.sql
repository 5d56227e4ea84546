create or replace function agui.compact_run(thread_key uuid, run_no int)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    run      agui.run;
    fold     agui.fold;
    is_tip   boolean;
    base_no  int;
    held     int4multirange;
    fold_bytes bigint;
    old_tip  int;
begin
    update agui.run as compacted
    set (n, log_bytes) = (select size.n, size.log_bytes from agui.run_size(compacted.thread_key, compacted.run_no) as size)
    where compacted.thread_key = compact_run.thread_key and compacted.run_no = compact_run.run_no
    returning compacted.* into run;

    fold := agui.fold_run(thread_key, run_no, run.last_seq, agui.fold_base(thread_key, run_no, run.last_seq));

    is_tip := not exists (
        select
        from agui.run as younger
        where younger.thread_key = compact_run.thread_key
            and younger.run_no > compact_run.run_no
            and younger.status <> 'running'
    );
    if not is_tip then
        -- Uncompressed sizes: what is stored will be smaller, so the rule errs on the side of fewer snapshots.
        base_no := agui.strict_base(thread_key, run_no);
        held := agui.held_messages(thread_key, base_no);
        select agui.snapshot_bytes(
            octet_length(fold.state) + octet_length(fold.interrupts), count(*), coalesce(sum(octet_length(message.body)), 0)
        )
        into fold_bytes
        from unnest(fold.message_nos, fold.bodies) as message (message_no, body)
        where not coalesce(message.message_no <@ held, false);

        if not agui.is_worth_keeping(agui.log_bytes_since(thread_key, run_no, base_no), fold_bytes) then
            perform agui.drop_snapshot(thread_key, run_no);  -- one may be left from when the run was in progress
            return false;
        end if;
    end if;

    perform agui.write_snapshot(thread_key, run_no, fold);

    old_tip := agui.previous_tip(thread_key, run_no);
    if old_tip is not null then
        perform agui.drop_needless_snapshot(thread_key, old_tip);
    end if;
    return true;
end
$$;

comment on function agui.compact_run(uuid, int) is
    'Processes one ended run: measures its log, folds its lineage from the nearest snapshot, and keeps the result where the run is the '
    'tip of its thread (the youngest that has ended) or agui.is_worth_keeping says so. Answers whether it kept one. '
    'The caller holds the thread''s row.';

revoke execute on function agui.compact_run(uuid, int) from public;
