create or replace function agui_internal.store_parts(thread_key uuid, channel_no int, value json)
returns int4range[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bodies   text[] := array(select element.body::text from json_array_elements(value) with ordinality as element (body, place) order by element.place);
    prints   bigint[];
    part_nos int[];
    last_no  int;
    ranges   int4range[];
begin
    -- Only the elements are stored. White space between them would be lost.
    if bodies = '{}' or '[' || array_to_string(bodies, ',') || ']' <> value::text then
        return null;
    end if;
    prints := array(
        select ('x' || encode(substring(sha256(convert_to(element.body, 'UTF8')) for 8), 'hex'))::bit(64)::bigint
        from unnest(bodies) with ordinality as element (body, place)
        order by element.place
    );

    -- Another call that stores parts of this channel waits here, then sees these.
    select channel.parts into last_no
    from agui.channel as channel
    where channel.thread_key = store_parts.thread_key and channel.channel_no = store_parts.channel_no
    for no key update;

    part_nos := array(
        select known.part_no
        from rows from (unnest(bodies), unnest(prints)) with ordinality as element (body, print, place)
        left join lateral (
            select part.part_no
            from agui.channel_part as part
            where part.thread_key = store_parts.thread_key and part.channel_no = store_parts.channel_no
                and part.print = element.print and part.body::text = element.body
            order by part.part_no
            limit 1
        ) as known on true
        order by element.place
    );
    if array_position(part_nos, null) is not null then
        with missing as (
            select element.body, element.print, min(element.place) as place
            from rows from (unnest(bodies), unnest(prints), unnest(part_nos)) with ordinality as element (body, print, part_no, place)
            where element.part_no is null
            group by element.body, element.print
        ),
        added as (
            insert into agui.channel_part (thread_key, channel_no, part_no, print, body)
            select store_parts.thread_key, store_parts.channel_no, last_no + row_number() over (order by missing.place), missing.print, missing.body::json
            from missing
            returning part_no, body
        )
        select array_agg(coalesce(element.part_no, added.part_no) order by element.place), max(added.part_no)
        into part_nos, last_no
        from rows from (unnest(bodies), unnest(part_nos)) with ordinality as element (body, part_no, place)
        left join added on element.part_no is null and added.body::text = element.body;

        update agui.channel as channel
        set parts = last_no
        where channel.thread_key = store_parts.thread_key and channel.channel_no = store_parts.channel_no;
    end if;

    select array_agg(int4range(run.first_no, run.last_no, '[]') order by run.run_no)
    into ranges
    from (
        select numbered.run_no, min(numbered.part_no) as first_no, max(numbered.part_no) as last_no
        from (
            select beginning.part_no, sum(beginning.is_one::int) over (order by beginning.place) as run_no
            from (
                select element.part_no, element.place, element.part_no is distinct from lag(element.part_no) over (order by element.place) + 1 as is_one
                from unnest(part_nos) with ordinality as element (part_no, place)
            ) as beginning
        ) as numbered
        group by numbered.run_no
    ) as run;
    return ranges;
end
$$;

comment on function agui_internal.store_parts(uuid, int, json) is
    'Stores the elements of an array that its channel does not have yet, and returns the numbers of '
    'all elements in order. Null: the array is empty, or has white space between its elements.';

revoke execute on function agui_internal.store_parts(uuid, int, json) from public;
