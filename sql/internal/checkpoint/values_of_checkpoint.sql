create or replace function agui_internal.values_of_checkpoint(checkpoint agui.checkpoint, only_channels text[] default null)
returns table (channel text, version text, type text, body json, bytes bytea)
-- In PL/pgSQL the plan is cached.
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        named.name, known.version, coalesce(known.type, 'json'),
        case
            when known.part_nos is null then known.body
            else (
                select ('[' || string_agg(part.body::text, ',' order by run.place, part.part_no) || ']')::json
                from unnest(known.part_nos) with ordinality as run (part_nos, place)
                -- The offset makes this a look-up for each range, not a pass over all parts of the channel.
                cross join lateral (
                    select part.part_no, part.body
                    from agui.channel_part as part
                    where part.thread_key = known.thread_key and part.channel_no = known.channel_no
                        and part.part_no >= lower(run.part_nos) and part.part_no < upper(run.part_nos)
                    offset 0
                ) as part
            )
        end,
        known.bytes
    from agui_internal.channel_versions(checkpoint.document) as current
    join agui.channel as named
        on named.thread_key = checkpoint.thread_key and named.namespace = checkpoint.namespace and named.name = current.channel
    join agui.channel_value as known
        on known.thread_key = named.thread_key and known.channel_no = named.channel_no and known.version = current.version
    where only_channels is null or named.name = any (only_channels)
    order by named.name;
end
$$;

comment on function agui_internal.values_of_checkpoint(agui.checkpoint, text[]) is
    'The values of the channels of a checkpoint, or of some of them: those versions that its document '
    'names and that are stored.';

revoke execute on function agui_internal.values_of_checkpoint(agui.checkpoint, text[]) from public;
