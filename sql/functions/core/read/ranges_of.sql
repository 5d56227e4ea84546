create or replace function agui_internal.ranges_of(numbers int[])
returns int4range[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    number   int;
    first_no int;  -- of the current range
    next_no  int;  -- what would continue it
    ranges   int4range[];
begin
    foreach number in array coalesce(numbers, '{}') loop
        if number is distinct from next_no then
            if first_no is not null then
                ranges := ranges || int4range(first_no, next_no);
            end if;
            first_no := number;
        end if;
        next_no := number + 1;
    end loop;
    return case when first_no is not null then ranges || int4range(first_no, next_no) end;
end
$$;

comment on function agui_internal.ranges_of(int[]) is
    'Numbers in their order, as ranges of numbers that follow each other. Null: there are none.';

revoke execute on function agui_internal.ranges_of(int[]) from public;
