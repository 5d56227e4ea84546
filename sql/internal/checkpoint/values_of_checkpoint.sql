create or replace function agui_internal.values_of_checkpoint(checkpoint agui.checkpoint, only_channels text[] default null)
returns agui.channel_value_row[]
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(
        (
            channel.name, known.version, known.type,
            coalesce(known.body, agui_internal.joined_parts(known.thread_key, known.channel_no, known.part_nos)), known.bytes
        )::agui.channel_value_row
        order by channel.name
    ), '{}')
    from agui_internal.channel_versions(checkpoint.document) as version
    join agui.channel as channel
        on channel.thread_key = checkpoint.thread_key and channel.namespace = checkpoint.namespace and channel.name = version.channel
    join agui.channel_value as known
        on known.thread_key = channel.thread_key and known.channel_no = channel.channel_no and known.version = version.version
    where only_channels is null or channel.name = any (only_channels)
$$;

comment on function agui_internal.values_of_checkpoint(agui.checkpoint, text[]) is
    'The values of the channels of a checkpoint, or of some of them: those versions that its document '
    'names and that are stored.';

revoke execute on function agui_internal.values_of_checkpoint(agui.checkpoint, text[]) from public;
