create or replace function agui_internal.fold_piece_end(thread_key uuid, run_no int, after_seq bigint, through_seq bigint)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A piece takes a fraction of a second. Smaller pieces cost more, because each is a separate
    -- query.
    max_batches constant int := 1000;
    max_bytes   constant int := 1024 * 1024;
    page record;
begin
    select * into page
    from agui_internal.page_of_batches(thread_key, after_seq + 1, through_seq, array[run_no], max_batches, max_bytes);
    if page.has_more is not true then
        return through_seq;
    end if;
    return (
        select least(batch.first_seq + batch.n - 1, fold_piece_end.through_seq)
        from agui.batch as batch
        where batch.thread_key = fold_piece_end.thread_key and batch.first_seq = page.last_seq
    );
end
$$;

comment on function agui_internal.fold_piece_end(uuid, int, bigint, bigint) is
    'The seq at which a fold of the events of a run after after_seq, up to through_seq, checks the '
    'time next: the end of a batch, about a thousand batches or 1 MB further on.';

revoke execute on function agui_internal.fold_piece_end(uuid, int, bigint, bigint) from public;
