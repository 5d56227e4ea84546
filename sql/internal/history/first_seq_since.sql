-- recorded_at never falls along the log, so the place is found by halving: a look-up in the primary key for each step.
create or replace function agui_internal.first_seq_since(thread_key uuid, since timestamptz)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    low  bigint := 1;  -- batches that begin before it are too old
    high bigint;       -- batches that begin from it on are not
    mid  record;
begin
    select batch.first_seq + batch.n into high
    from agui.batch as batch
    where batch.thread_key = first_seq_since.thread_key
    order by batch.first_seq desc
    limit 1;

    while low < high loop
        select batch.first_seq, batch.n, batch.recorded_at into mid
        from agui.batch as batch
        where batch.thread_key = first_seq_since.thread_key and batch.first_seq <= (low + high) / 2
        order by batch.first_seq desc
        limit 1;
        if mid.recorded_at < since then
            low := mid.first_seq + mid.n;
        else
            high := mid.first_seq;
        end if;
    end loop;
    return low;
end
$$;

comment on function agui_internal.first_seq_since(uuid, timestamptz) is
    'seq of the first event in the first batch of a thread that ends at a point in time or later; behind the end of the log when there is none.';

revoke execute on function agui_internal.first_seq_since(uuid, timestamptz) from public;
