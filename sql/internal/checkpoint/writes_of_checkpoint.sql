create or replace function agui_internal.writes_of_checkpoint(checkpoint agui.checkpoint, only_channels text[] default null)
returns agui.checkpoint_write_row[]
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(
        (
            written.task_id, written.task_path, written.place, channel.name, written.type,
            coalesce(written.body, agui_internal.joined_parts(written.thread_key, written.channel_no, written.part_nos)), written.bytes
        )::agui.checkpoint_write_row
        order by written.task_path, written.task_id, written.place
    ), '{}')
    from agui.checkpoint_write as written
    join agui.channel as channel
        on channel.thread_key = written.thread_key and channel.channel_no = written.channel_no
    where written.thread_key = checkpoint.thread_key
        and written.checkpoint_no = checkpoint.checkpoint_no
        and (only_channels is null or channel.name = any (only_channels))
$$;

comment on function agui_internal.writes_of_checkpoint(agui.checkpoint, text[]) is
    'What tasks wrote after a checkpoint, to all channels or to some, in the order in which a graph '
    'applies it.';

revoke execute on function agui_internal.writes_of_checkpoint(agui.checkpoint, text[]) from public;
