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
rows 100
set search_path = pg_catalog, pg_temp
-- A plan for each call, or one made while the tables were small, costs more than the look-ups.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    key        uuid := agui_internal.checked_thread_key(thread_id, scope);
    checkpoint agui.checkpoint;
    remaining  text[] := array(select distinct name from unnest(channels) as name where name is not null);
    found_here text[];
    step       agui.channel_write_row;
    next_place int := 0;
    -- A child may have been stored before its parent, so numbers do not rule out a cycle.
    steps      bigint := (select max(candidate.checkpoint_no) from agui.checkpoint as candidate where candidate.thread_key = key);
begin
    if thread_id is null or channels is null or namespace is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'the history of channels needs a thread id, channels, a namespace and a scope that are not null';
    end if;
    if checkpoint_id is not null then
        select candidate.* into checkpoint
        from agui.checkpoint as candidate
        where candidate.thread_key = key
            and candidate.namespace = channel_history.namespace
            and candidate.checkpoint_id = channel_history.checkpoint_id
            and candidate.metadata is not null;
    else
        select candidate.* into checkpoint
        from agui.checkpoint as candidate
        where candidate.thread_key = key and candidate.namespace = channel_history.namespace and candidate.metadata is not null
        order by candidate.checkpoint_id desc
        limit 1;
    end if;

    -- What tasks wrote after the checkpoint itself is not part of its state.
    while cardinality(remaining) > 0 loop
        select parent.* into checkpoint
        from agui.checkpoint as parent
        where parent.thread_key = key and parent.checkpoint_no = checkpoint.parent_no and parent.metadata is not null and steps > 0;
        exit when not found;
        steps := steps - 1;
        for step in
            select (next_place - row_number() over (order by written.ordinality desc))::int, checkpoint.checkpoint_id, written.channel, written.task_id,
                written.type, written.body, written.bytes
            from agui_internal.writes_of_checkpoint(checkpoint, remaining) with ordinality as written
            order by written.ordinality desc
        loop
            return next step;
            next_place := step.place;
        end loop;
        found_here := '{}';
        for step in
            select (next_place - value.ordinality)::int, checkpoint.checkpoint_id, value.channel, null, value.type, value.body, value.bytes
            from agui_internal.values_of_checkpoint(checkpoint, remaining) with ordinality as value
        loop
            return next step;
            next_place := step.place;
            found_here := found_here || step.channel;
        end loop;
        if found_here <> '{}' then
            remaining := array(select unnest(remaining) except select unnest(found_here));
        end if;
    end loop;
end
$$;

comment on function agui.channel_history(text, text[], text, text, text) is
    'Returns what built the values of channels at a checkpoint (null: the one with the greatest id in '
    'the namespace): for each channel the value at its nearest ancestor that has one, and what tasks '
    'wrote to the channel from that ancestor on. Newest first; order by place for oldest first. What '
    'tasks wrote after the checkpoint itself is not included. The graph may store only what changes, as the DeltaChannel of LangGraph '
    'does. Returns no row for an unknown thread or checkpoint. '
    'Errors: UI008 an argument is null, UI012 another thread has the same key.';

revoke execute on function agui.channel_history(text, text[], text, text, text) from public;
