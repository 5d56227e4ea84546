create or replace function agui_internal.settle_interrupts()
returns int
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- The queue is read in its order, from the index that has it: another one, which has all that are open, may look cheaper.
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    most_rows constant int := 1000;
    now       constant timestamptz := clock_timestamp();
    rows      tid[];
begin
    select array_agg(due.ctid) into rows
    from (
        select asked.ctid
        from agui.projected_interrupt as asked
        where asked.is_open is not false and asked.is_call is not true and asked.is_open is null
        order by asked.is_open, asked.expires_at
        limit most_rows
        for update skip locked  -- not one whose thread is being erased
    ) as due;
    if rows is null then
        select array_agg(due.ctid) into rows
        from (
            select asked.ctid
            from agui.projected_interrupt as asked
            where asked.is_open is not false and asked.is_call is not true and asked.is_open and asked.expires_at <= now
            order by asked.is_open, asked.expires_at
            limit most_rows
            for update skip locked
        ) as due;
    end if;
    if rows is null then
        return 0;
    end if;
    update agui.projected_interrupt as asked
    set is_open = agui_internal.may_wait(asked)
    where asked.ctid = any (rows);
    return cardinality(rows);
end
$$;

comment on function agui_internal.settle_interrupts() is
    'Sets agui.projected_interrupt.is_open of up to 1000 interrupts: those of which it is not known, else those '
    'that have expired. Returns of how many; 0: there are none.';

revoke execute on function agui_internal.settle_interrupts() from public;
