create or replace function agui_internal.mark_compacted(
    thread_key uuid,
    run_nos    int[],
    last_seqs  bigint[],
    ns         bigint[],
    log_bytes  bigint[]
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    update agui.run as run
    set n = compacted.n, log_bytes = compacted.log_bytes
    from unnest(run_nos, last_seqs, ns, mark_compacted.log_bytes) as compacted (run_no, last_seq, n, log_bytes)
    where run.thread_key = mark_compacted.thread_key and run.run_no = compacted.run_no and run.last_seq = compacted.last_seq
        -- What the join says too: so that no plan reads all runs of the thread.
        and run.run_no >= (select min(number) from unnest(run_nos) as number)
        and run.run_no <= (select max(number) from unnest(run_nos) as number);
end
$$;

comment on function agui_internal.mark_compacted(uuid, int[], bigint[], bigint[], bigint[]) is
    'Removes runs that were folded outside of the database from the queue of compaction, except '
    'runs with events that were appended after last_seq in the meantime. The caller holds the row '
    'of the thread.';

revoke execute on function agui_internal.mark_compacted(uuid, int[], bigint[], bigint[], bigint[]) from public;
