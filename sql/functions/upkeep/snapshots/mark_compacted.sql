create or replace function agui_internal.mark_compacted(
    thread_key uuid,
    run_nos    int[],
    last_seqs  bigint[],
    ns         bigint[],
    log_bytes  bigint[],
    batches    bigint[]
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    if cardinality(run_nos) = 1 then
        update agui.run as run
        set n = ns[1], log_bytes = mark_compacted.log_bytes[1],
            -- There is nothing to join.
            repacked_at = case when batches[1] = 1 then coalesce(run.repacked_at, clock_timestamp()) else run.repacked_at end
        where run.thread_key = mark_compacted.thread_key and run.run_no = run_nos[1] and run.last_seq = last_seqs[1];
        return;
    end if;
    update agui.run as run
    set n = compacted.n, log_bytes = compacted.log_bytes,
        repacked_at = case when compacted.batches = 1 then coalesce(run.repacked_at, clock_timestamp()) else run.repacked_at end
    from unnest(run_nos, last_seqs, ns, mark_compacted.log_bytes, mark_compacted.batches) as compacted (run_no, last_seq, n, log_bytes, batches)
    where run.thread_key = mark_compacted.thread_key and run.run_no = compacted.run_no and run.last_seq = compacted.last_seq
        -- What the join says too: so that no plan reads all runs of the thread.
        and run.run_no >= (select min(number) from unnest(run_nos) as number)
        and run.run_no <= (select max(number) from unnest(run_nos) as number);
end
$$;

comment on function agui_internal.mark_compacted(uuid, int[], bigint[], bigint[], bigint[], bigint[]) is
    'Removes runs that were folded from the queue of compaction, and those of one batch from that '
    'of repack, except runs with events that were appended after last_seq in the meantime. The '
    'caller holds the row of the thread.';

revoke execute on function agui_internal.mark_compacted(uuid, int[], bigint[], bigint[], bigint[], bigint[]) from public;
