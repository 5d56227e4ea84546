create or replace function agui_internal.joined_parts(thread_key uuid, channel_no int, part_nos int4range[])
returns json
language sql
stable
parallel safe
return (
    select ('[' || string_agg(part.body::text, ',' order by run.place, part.part_no) || ']')::json
    from unnest(part_nos) with ordinality as run (part_nos, place)
    join agui.channel_part as part
        on part.thread_key = joined_parts.thread_key and part.channel_no = joined_parts.channel_no
            and part.part_no >= lower(run.part_nos) and part.part_no < upper(run.part_nos)
);

comment on function agui_internal.joined_parts(uuid, int, int4range[]) is
    'The array that these parts of a channel are the elements of; null if part_nos is null.';

revoke execute on function agui_internal.joined_parts(uuid, int, int4range[]) from public;
