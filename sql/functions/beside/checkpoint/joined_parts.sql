create or replace function agui_internal.joined_parts(thread_key uuid, channel_no int, part_nos int4range[])
returns json
-- In PL/pgSQL the plan is cached.
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select ('[' || string_agg(part.body::text, ',' order by run.place, part.part_no) || ']')::json
        from unnest(part_nos) with ordinality as run (part_nos, place)
        -- The offset makes this a look-up for each range. A join could read all parts of the channel for
        -- each.
        cross join lateral (
            select part.part_no, part.body
            from agui.channel_part as part
            where part.thread_key = joined_parts.thread_key and part.channel_no = joined_parts.channel_no
                and part.part_no >= lower(run.part_nos) and part.part_no < upper(run.part_nos)
            offset 0
        ) as part
    );
end
$$;

comment on function agui_internal.joined_parts(uuid, int, int4range[]) is
    'The array that these parts of a channel are the elements of.';

revoke execute on function agui_internal.joined_parts(uuid, int, int4range[]) from public;
