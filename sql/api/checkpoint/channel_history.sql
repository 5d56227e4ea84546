create or replace function agui.channel_history(
    thread_id     text,
    channels      text[],
    checkpoint_id text default null,
    namespace     text default '',
    scope         text default ''
)
returns setof agui.channel_write_row
language plpgsql
stable
security definer
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    key        uuid := agui_internal.checked_thread_key(thread_id, scope);
    checkpoint agui.checkpoint;
    remaining  text[] := channels;
    step       agui.channel_write_row;
    next_place int := 0;
    known      agui.channel_value_row[];
    -- A child may have been stored before its parent, so numbers do not rule out a cycle.
    steps      bigint := (select max(candidate.checkpoint_no) from agui.checkpoint as candidate where candidate.thread_key = key);
begin
    if thread_id is null or channels is null or namespace is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'the history of channels needs a thread id, channels, a namespace and a scope that are not null';
    end if;
    select candidate.* into checkpoint
    from agui.checkpoint as candidate
    where candidate.thread_key = key
        and candidate.namespace = channel_history.namespace
        and (channel_history.checkpoint_id is null or candidate.checkpoint_id = channel_history.checkpoint_id)
        and candidate.metadata is not null
    order by candidate.checkpoint_id desc
    limit 1;

    -- What tasks wrote after the checkpoint itself is not part of its state.
    while cardinality(remaining) > 0 loop
        select parent.* into checkpoint
        from agui.checkpoint as parent
        where parent.thread_key = key and parent.checkpoint_no = checkpoint.parent_no and parent.metadata is not null and steps > 0;
        exit when not found;
        steps := steps - 1;
        for step in
            select (next_place - written.newest)::int, checkpoint.checkpoint_id, written.channel, written.task_id, written.type, written.body, written.bytes
            from (
                select one.*, row_number() over (order by one.ordinality desc) as newest
                from unnest(agui_internal.writes_of_checkpoint(checkpoint, remaining)) with ordinality as one
            ) as written
            order by written.newest
        loop
            return next step;
            next_place := step.place;
        end loop;
        known := agui_internal.values_of_checkpoint(checkpoint, remaining);
        for step in
            select (next_place - value.ordinality)::int, checkpoint.checkpoint_id, value.channel, null, value.type, value.body, value.bytes
            from unnest(known) with ordinality as value
        loop
            return next step;
            next_place := step.place;
        end loop;
        remaining := array(select name from unnest(remaining) as name where name <> all (select value.channel from unnest(known) as value));
    end loop;
end
$$;

comment on function agui.channel_history(text, text[], text, text, text) is
    'Returns what built the values of channels at a checkpoint (null: the one with the greatest id in '
    'the namespace): for each channel the value at its nearest ancestor that has one, and what tasks '
    'wrote to the channel from that ancestor on. Newest first; order by place for oldest first. What tasks wrote after the checkpoint '
    'itself is not included. The graph may store only what changes, as the DeltaChannel of LangGraph '
    'does. Returns no row for an unknown thread or checkpoint. '
    'Errors: UI008 an argument is null, UI012 another thread has the same key.';

revoke execute on function agui.channel_history(text, text[], text, text, text) from public;
