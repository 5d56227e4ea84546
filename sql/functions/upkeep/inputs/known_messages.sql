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
    part     record;  -- a message of the input before
    joined   bytea;   -- with what stands before it
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

    -- A window that slides begins with a later message of the input before.
    until := first_at;
    for part in
        select stored.part_no, convert_to(stored.body::text, 'UTF8') as body
        from jsonb_to_recordset(sections) as listed (kind text, part_nos int4range[])
        cross join lateral agui_internal.parts_in(known_messages.thread_key, 'message', listed.part_nos) as stored
        where listed.kind = 'message'
    loop
        joined := case when part_nos is null then part.body else convert_to(separator, 'UTF8') || part.body end;
        if substring(known_messages.input from until for octet_length(joined)) = joined then
            part_nos := part_nos || part.part_no;
            until := until + octet_length(joined);
            -- That of this input: the one before may have another, or a single message.
            separator := coalesce(separator, case when substring(known_messages.input from until for 2) = ', ' then ', ' else ',' end);
        else
            exit when part_nos is not null;
        end if;
    end loop;

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
