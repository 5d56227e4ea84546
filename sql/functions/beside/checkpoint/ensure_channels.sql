create or replace function agui_internal.ensure_channels(thread_key uuid, namespace text, names text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    missing text[];
begin
    -- Loops only if another transaction adds channels to the thread at the same time: its numbers, or
    -- its names, are taken then.
    loop
        missing := array(
            select distinct name
            from unnest(names) as name
            where not exists (
                select
                from agui.channel as channel
                where channel.thread_key = ensure_channels.thread_key
                    and channel.namespace = ensure_channels.namespace
                    and channel.name = name.name
                offset 0  -- a look-up for each name, not a join
            )
        );
        exit when missing = '{}';
        insert into agui.channel (thread_key, channel_no, namespace, name)
        select ensure_channels.thread_key, known.last_no + added.place, ensure_channels.namespace, added.name
        from (
            select coalesce(max(channel.channel_no), 0) as last_no
            from agui.channel as channel
            where channel.thread_key = ensure_channels.thread_key
        ) as known
        cross join unnest(missing) with ordinality as added (name, place)
        on conflict do nothing;
    end loop;
end
$$;

comment on function agui_internal.ensure_channels(uuid, text, text[]) is
    'Creates those of the named channels that do not exist in the namespace.';

revoke execute on function agui_internal.ensure_channels(uuid, text, text[]) from public;
