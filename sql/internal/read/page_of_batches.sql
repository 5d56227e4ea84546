create or replace function agui_internal.page_of_batches(
    thread_key uuid,
    from_seq   bigint,
    through_seq bigint,
    run_nos    int[],
    max_rows   int,
    max_bytes  bigint,
    input_seqs bigint[] default '{}',
    out last_seq bigint,
    out bytes    bigint,
    out has_more boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    next_batch record;
    next_bytes bigint;
    row_count  int := 0;
begin
    bytes := 0;
    has_more := false;
    for next_batch in
        select batch.first_seq, batch.n, batch.run_no, batch.events
        from agui.batch as batch
        where batch.thread_key = page_of_batches.thread_key
            and batch.first_seq between from_seq and page_of_batches.through_seq
            and batch.run_no = any (run_nos)
        order by batch.first_seq
        limit max_rows + 1
    loop
        next_bytes := agui_internal.most_bytes(next_batch.events);
        if input_seqs <> '{}' then
            next_bytes := next_bytes + (
                select coalesce(sum(agui_internal.most_bytes(beside.input)), 0)
                from agui.run_input as beside
                where beside.thread_key = page_of_batches.thread_key
                    and beside.run_no = next_batch.run_no
                    and exists (
                        select
                        from unnest(input_seqs) as place (seq)
                        where place.seq between next_batch.first_seq and next_batch.first_seq + next_batch.n - 1
                    )
            );
        end if;
        has_more := row_count = max_rows or row_count > 0 and bytes + next_bytes > max_bytes;
        exit when has_more;
        row_count := row_count + 1;
        bytes := bytes + next_bytes;
        last_seq := next_batch.first_seq;
    end loop;
end
$$;

comment on function agui_internal.page_of_batches(uuid, bigint, bigint, int[], int, bigint, bigint[]) is
    'A page of the batches of some runs that begin between two seqs: up to max_rows of up to max_bytes of text together, and at least one where there is '
    'one. last_seq is where the last of them begins (null: there is none), bytes a bound of what they take, with the inputs that '
    'count at input_seqs; has_more says that others follow.';

revoke execute on function agui_internal.page_of_batches(uuid, bigint, bigint, int[], int, bigint, bigint[]) from public;
