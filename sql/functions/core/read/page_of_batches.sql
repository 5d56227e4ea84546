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
    row_count  int := 0;
begin
    -- Usually all rows fit, and the loop would take as long as reading them.
    if coalesce(cardinality(input_seqs), 0) = 0 then
        select max(batch.first_seq), sum(batch.bytes), count(*) = max_rows
        into last_seq, bytes, has_more
        from (
            select batch.first_seq, agui_internal.batch_bytes(batch.events, batch.text_bytes) as bytes
            from agui.batch as batch
            where batch.thread_key = page_of_batches.thread_key
                and batch.first_seq between from_seq and page_of_batches.through_seq
                and batch.run_no = any (run_nos)
            order by batch.first_seq
            limit max_rows
        ) as batch;
        if (bytes > max_bytes) is not true then
            return;
        end if;
    end if;

    last_seq := null;
    bytes := 0;
    has_more := false;
    for next_batch in
        select
            batch.first_seq,
            agui_internal.batch_bytes(batch.events, batch.text_bytes) + coalesce(
                (
                    select sum(coalesce(given.part_bytes, given.bytes, octet_length(given.input::text)))
                    from unnest(input_seqs) as place (seq)
                    join agui.run_input as given
                        on given.thread_key = batch.thread_key and given.run_no = batch.run_no
                    where place.seq between batch.first_seq and batch.first_seq + batch.n - 1
                ),
                0
            ) as bytes
        from agui.batch as batch
        where batch.thread_key = page_of_batches.thread_key
            and batch.first_seq between from_seq and page_of_batches.through_seq
            and batch.run_no = any (run_nos)
        order by batch.first_seq
        limit max_rows + 1
    loop
        has_more := row_count = max_rows or row_count > 0 and bytes + next_batch.bytes > max_bytes;
        exit when has_more;
        row_count := row_count + 1;
        bytes := bytes + next_batch.bytes;
        last_seq := next_batch.first_seq;
    end loop;
end
$$;

comment on function agui_internal.page_of_batches(uuid, bigint, bigint, int[], int, bigint, bigint[]) is
    'A page of the batches of some runs that begin between two seqs: up to max_rows batches with '
    'up to max_bytes of text in total, and at least one if there is any. last_seq is the first seq '
    'of the last batch (null: there is none). bytes is their size, including the inputs that count '
    'at input_seqs. has_more: others may follow.';

revoke execute on function agui_internal.page_of_batches(uuid, bigint, bigint, int[], int, bigint, bigint[]) from public;
