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
    -- Each offset makes its query a look-up for each row before it. A join could read all channels of
    -- the thread for each row.
    return query
    select
        named.name, known.version, coalesce(known.type, 'json'),
        case
            when known.part_nos is null then known.body
            else agui_internal.joined_parts(known.thread_key, known.channel_no, known.part_nos)
        end,
        known.bytes
    from agui_internal.channel_versions(checkpoint.document) as current
    cross join lateral (
        select channel.channel_no, channel.name
        from agui.channel as channel
        where channel.thread_key = checkpoint.thread_key and channel.namespace = checkpoint.namespace and channel.name = current.channel
        offset 0
    ) as named
    cross join lateral (
        select value.*
        from agui.channel_value as value
        where value.thread_key = checkpoint.thread_key and value.channel_no = named.channel_no and value.version = current.version
        offset 0
    ) as known
    where only_channels is null or current.channel in (select unnest(only_channels))
    order by named.name;
end
$$;

comment on function agui_internal.values_of_checkpoint(agui.checkpoint, text[]) is
    'The values of the channels of a checkpoint, or of some of them: those versions that its document '
    'names and that are stored.';

revoke execute on function agui_internal.values_of_checkpoint(agui.checkpoint, text[]) from public;
