create or replace function agui_internal.store_parts(thread_key uuid, channel_no int, value json)
returns int4range[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    bodies   text[] := array(select element.body::text from json_array_elements(value) with ordinality as element (body, place) order by element.place);
    -- Equal elements of other threads have other prints, so that none is common to many rows.
    beginning constant bytea := uuid_send(thread_key) || int4send(channel_no);
    prints   bigint[];
    part_nos int[];
    last_no  int;
begin
    -- Only the elements are stored. White space between them would be lost.
    if bodies = '{}' or '[' || array_to_string(bodies, ',') || ']' <> value::text then
        return null;
    end if;
    prints := array(
        select agui_internal.part_print(beginning, element.body)
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
            -- The offset keeps the other conditions from the choice of the index: a plan made while the
            -- table was small would read all parts of the channel for each element.
            from (select * from agui.channel_part as part where part.print = element.print offset 0) as part
            where part.thread_key = store_parts.thread_key and part.channel_no = store_parts.channel_no and part.body::text = element.body
            limit 1
        ) as known on true
        order by element.place
    );
    if array_position(part_nos, null) is not null then
        -- Equal elements get the number of the first of them.
        with numbered as (
            select
                element.body, element.print, element.place, element.first_place,
                coalesce(
                    element.part_no,
                    last_no + (dense_rank() over (partition by element.part_no is null order by element.first_place))::int
                ) as part_no,
                element.part_no is null as is_new
            from (
                select element.*, min(element.place) over (partition by element.part_no is null, element.print, element.body collate "C") as first_place
                from rows from (unnest(bodies), unnest(prints), unnest(part_nos)) with ordinality as element (body, print, part_no, place)
            ) as element
        ),
        added as (
            insert into agui.channel_part (thread_key, channel_no, part_no, print, body)
            select store_parts.thread_key, store_parts.channel_no, numbered.part_no, numbered.print, numbered.body::json
            from numbered
            where numbered.is_new and numbered.place = numbered.first_place
        )
        select array_agg(numbered.part_no order by numbered.place), max(numbered.part_no) filter (where numbered.is_new)
        into part_nos, last_no
        from numbered;

        update agui.channel as channel
        set parts = last_no
        where channel.thread_key = store_parts.thread_key and channel.channel_no = store_parts.channel_no;
    end if;

    return agui_internal.ranges_of(part_nos);
end
$$;

comment on function agui_internal.store_parts(uuid, int, json) is
    'Stores the elements of an array that its channel does not have yet, and returns the numbers of '
    'all elements in order. Null: the array is empty, or has white space between its elements.';

revoke execute on function agui_internal.store_parts(uuid, int, json) from public;
