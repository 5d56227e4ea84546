create or replace function agui_internal.known_messages(
    thread_key uuid,
    run_no     int,
    input      bytea,
    out part_nos  int[],
    out separator text,
    out first_at  int,
    out rest_at   int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    opening text;
    sections jsonb;
    known    record;  -- the messages of the input before
    until    int;
begin
    select stored.sections into sections
    from agui.run_input as stored
    where stored.thread_key = known_messages.thread_key
        and stored.run_no < known_messages.run_no
        and stored.sections @> '[{"kind": "message"}]'
    order by stored.run_no desc
    limit 1;
    foreach opening in array array['"messages":[', '"messages": ['] loop
        first_at := nullif(position(convert_to(opening, 'UTF8') in known_messages.input), 0) + octet_length(opening);
        exit when first_at is not null;
    end loop;
    if sections is null or first_at is null then
        return;
    end if;
    -- It must be the list of the input: what stands before it, closed, is an object that ends with it.
    begin
        if (
            select array_agg(member.key order by member.place) filter (where member.key = 'messages' or member.is_last)
                is distinct from array['messages']
            from (
                select member.key, member.place, member.place = max(member.place) over () as is_last
                from json_object_keys(
                    (agui_internal.json_guard(convert_from(substring(known_messages.input for first_at - 1), 'UTF8')) || ']}')::json
                ) with ordinality as member (key, place)
            ) as member
        ) then
            return;
        end if;
    exception
        when invalid_text_representation then
            return;
    end;

    select listed.separator, listed.part_nos into known
    from jsonb_to_recordset(sections) as listed (kind text, separator text, part_nos int4range[])
    where listed.kind = 'message';
    separator := known.separator;
    with part as materialized (
        select
            stored.part_no, text.body, octet_length(text.body) + octet_length(known_messages.separator) as bytes,
            row_number() over (order by stored.place, stored.part_no) as place
        from agui_internal.parts_in(known_messages.thread_key, 'message', known.part_nos) as stored
        cross join lateral (select convert_to(stored.body::text, 'UTF8') as body offset 0) as text
    ),
    -- A window that slides begins with a later message of the input before.
    beginning as (
        select part.place
        from part
        where substring(known_messages.input from first_at for octet_length(part.body)) = part.body
        order by part.place
        limit 1
    ),
    placed as (
        select part.*, first_at + sum(part.bytes) over (order by part.place) - part.bytes as at
        from part
        where part.place >= (select beginning.place from beginning)
    ),
    equal as (
        select placed.*, bool_and(substring(known_messages.input from placed.at::int for octet_length(placed.body)) = placed.body) over (order by placed.place) as is_equal
        from placed
    )
    select array_agg(equal.part_no order by equal.place), max(equal.at + octet_length(equal.body))
    into part_nos, until
    from equal
    where equal.is_equal;

    rest_at := case
        when substring(known_messages.input from until for 1) = ']' then until
        when substring(known_messages.input from until for octet_length(separator)) = convert_to(separator, 'UTF8') then until + octet_length(separator)
    end;
    if rest_at is null then
        part_nos := null;
    end if;
end
$$;

comment on function agui_internal.known_messages(uuid, int, bytea) is
    'The messages at the beginning of an input that the input in parts before it has, too: the '
    'numbers of their parts, what stands between them, and the bytes where the first of them and what '
    'follows them begin, from 1. They need not be parsed again. part_nos is null if there are none.';

revoke execute on function agui_internal.known_messages(uuid, int, bytea) from public;
