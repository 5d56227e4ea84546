-- It is inlined.
create or replace function agui_internal.parts_in(thread_key uuid, kind text, part_nos int4range[])
returns table (place bigint, part_no int, bytes int, message_id text, body json)
language sql
stable
parallel safe
begin atomic
    select range.place, part.part_no, part.bytes, part.message_id, part.body
    from unnest(part_nos) with ordinality as range (part_nos, place)
    -- The offset makes this one range of the index for each range of numbers, read in its order.
    cross join lateral (
        select stored.part_no, stored.bytes, stored.message_id, stored.body
        from agui.input_part as stored
        where stored.thread_key = parts_in.thread_key
            and stored.kind = parts_in.kind
            and stored.part_no >= lower(range.part_nos) and stored.part_no < upper(range.part_nos)
        order by stored.part_no
        offset 0
    ) as part;
end;

comment on function agui_internal.parts_in(uuid, text, int4range[]) is
    'The parts of a section of an input (run_input.sections), in their order: that of place, the number '
    'of their range, and then of part_no. Parts that are missing are left out.';

revoke execute on function agui_internal.parts_in(uuid, text, int4range[]) from public;
