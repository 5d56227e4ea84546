create or replace function agui_internal.writes_of_checkpoint(checkpoint agui.checkpoint, only_channels text[] default null)
returns table (task_path text, task_id text, place int, channel text, type text, body json, bytes bytea)
-- In PL/pgSQL the plan is cached.
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The offsets as in agui_internal.values_of_checkpoint.
    return query
    select
        written.task_path, written.task_id, written.place, named.name, coalesce(written.type, 'json'),
        case
            when written.part_nos is null then written.body
            else agui_internal.joined_parts(written.thread_key, written.channel_no, written.part_nos)
        end,
        written.bytes
    from agui.checkpoint_write as written
    cross join lateral (
        select channel.name
        from agui.channel as channel
        where channel.thread_key = written.thread_key and channel.channel_no = written.channel_no
        offset 0
    ) as named
    where written.thread_key = checkpoint.thread_key
        and written.checkpoint_no = checkpoint.checkpoint_no
        and (only_channels is null or named.name in (select unnest(only_channels)))
    order by written.task_path, written.task_id, written.place;
end
$$;

comment on function agui_internal.writes_of_checkpoint(agui.checkpoint, text[]) is
    'What tasks wrote after a checkpoint, to all channels or to some, in the order in which a graph '
    'applies it.';

revoke execute on function agui_internal.writes_of_checkpoint(agui.checkpoint, text[]) from public;
