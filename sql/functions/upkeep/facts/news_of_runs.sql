create or replace function agui_internal.news_of_runs(runs agui.run[])
returns setof agui_internal.run_news
language plpgsql
stable
rows 1000
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
declare
    run    agui.run;
    before agui_internal.fold;
    after  agui_internal.fold;
    last   agui.run;  -- the run whose end `after` is
    parent agui.run;
    found  record;
    -- The messages that are new or changed, with their positions.
    run_keys uuid[] := '{}';
    run_nos  int[] := '{}';
    ids      text[] := '{}';
    roles    text[] := '{}';
    bodies   text[] := '{}';
    places   bigint[] := '{}';
begin
    foreach run in array array(select listed from unnest(runs) as listed order by listed.thread_key, listed.run_no) loop
        begin
            -- The runs of a conversation often follow each other: each is folded once.
            if run.parent_no is null then
                before := agui_internal.fold_empty();
            elsif run.thread_key = last.thread_key and run.parent_no = last.run_no then
                before := after;
            else
                select stored.* into parent
                from agui.run as stored
                where stored.thread_key = run.thread_key and stored.run_no = run.parent_no;
                before := agui_internal.fold_at(parent, null);
            end if;
            last := null;
            after := agui_internal.load_snapshot(run.thread_key, run.run_no);
            if after.through_seq < run.last_seq then
                perform agui_internal.refuse_quarantined(run, null);
                after := agui_internal.fold_runs(before, run.thread_key, array[run.run_no], array[run.first_seq - 1], array[run.last_seq]);
                after.state_patches := '{}';
            end if;
            last := run;
        exception
            when sqlstate 'UI022' or sqlstate 'UI023' then
                continue;  -- no client has what cannot be folded
        end;

        for found in
            select listed.id, listed.role, listed.body, listed.position
            from unnest(after.message_ids, after.roles, after.bodies) with ordinality as listed (id, role, body, position)
            where listed.role in ('user', 'assistant', 'tool')
                and listed.body not in (select known.body from unnest(before.bodies) as known (body))
        loop
            run_keys := array_append(run_keys, run.thread_key);
            run_nos := array_append(run_nos, run.run_no);
            ids := array_append(ids, found.id);
            roles := array_append(roles, found.role);
            bodies := array_append(bodies, found.body);
            places := array_append(places, found.position);
        end loop;
    end loop;

    return query
    with message as materialized (
        select told.thread_key, told.run_no, told.id, told.role, told.position, agui_internal.json_guarded(told.body::json) as body
        from unnest(run_keys, run_nos, ids, roles, bodies, places) as told (thread_key, run_no, id, role, body, position)
    ),
    of_run as materialized (
        select of_message.thread_key, of_message.run_no, of_message.first_seq, of_message.last_seq, of_message.started_at
        from unnest(runs) as of_message
        where (of_message.thread_key, of_message.run_no) in (select message.thread_key, message.run_no from message)
    ),
    event as (
        select
            of_run.thread_key,
            of_run.run_no,
            batch.first_seq + element.position - 1 as seq,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
            member.*
        from of_run
        cross join lateral (
            select *
            from agui.batch as stored
            where stored.thread_key = of_run.thread_key
                and stored.run_no = of_run.run_no
                and stored.first_seq between of_run.first_seq and of_run.last_seq
                and agui_internal.brings_messages(stored.events::text)
            offset 0
        ) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral json_to_record(agui_internal.json_guarded(element.value)) as member (
            type text, "messageId" json, "toolCallId" json, "parentMessageId" json, messages json, input json
        )
        where agui_internal.brings_messages(element.value::text)
    ),
    place as (
        select event.thread_key, event.run_no, named.id, min(event.seq) as seq, min(event.at) as at
        from event
        cross join lateral (
            select agui_internal.json_string_text(own.id::text) as id
            from (values (event."messageId"), (event."parentMessageId"), (event."toolCallId")) as own (id)
            where own.id is not null
            union all
            select case when json_typeof(item.message) = 'object' then agui_internal.json_string_text((item.message -> 'id')::text) end
            from (values (event.messages), (case when json_typeof(event.input) = 'object' then event.input -> 'messages' end)) as list (messages)
            cross join lateral json_array_elements(case when json_typeof(list.messages) = 'array' then list.messages end) as item (message)
        ) as named
        group by event.thread_key, event.run_no, named.id
    )
    select
        of_run.thread_key, of_run.run_no, coalesce(place.seq, of_run.first_seq), coalesce(place.at, of_run.started_at),
        message.role, message.id, agui_internal.text_of_content(message.body -> 'content'),
        case
            when message.role = 'tool' then row (
                coalesce(place.at, of_run.started_at), octet_length(agui_internal.json_unguard((message.body -> 'content')::text)),
                agui_internal.tool_error(message.body -> 'error', message.body -> 'content')
            )::agui_internal.tool_result
        end,
        case when message.role = 'tool' then agui_internal.json_string_text((message.body -> 'toolCallId')::text) end,
        null::text, null::bigint
    from message
    join of_run on of_run.thread_key = message.thread_key and of_run.run_no = message.run_no
    left join place on place.thread_key = message.thread_key and place.run_no = message.run_no and place.id = message.id
    union all
    (
        -- Of several calls with one id the first counts.
        select distinct on (call.thread_key, call.run_no, call.id)
            call.thread_key, call.run_no, null, null, null, call.message_id, null, null,
            call.id,
            agui_internal.json_string_text((call.function -> 'name')::text),
            octet_length(agui_internal.json_unguard((call.function -> 'arguments')::text)) - 2
        from (
            select
                message.thread_key, message.run_no, message.id as message_id, message.position, item.place,
                agui_internal.json_string_text((item.call -> 'id')::text) as id,
                item.call -> 'function' as function
            from message
            cross join lateral json_array_elements(
                case when message.role = 'assistant' and json_typeof(message.body -> 'toolCalls') = 'array' then message.body -> 'toolCalls' end
            ) with ordinality as item (call, place)
            where json_typeof(item.call) = 'object'
        ) as call
        where json_typeof(call.function) = 'object'
        order by call.thread_key, call.run_no, call.id, call.position, call.place
    );
end
$$;

comment on function agui_internal.news_of_runs(agui.run[]) is
    'What runs that have ended add to their conversations, according to the fold: messages of users, assistants and '
    'tools, and tool calls. A run that cannot be folded adds nothing.';

revoke execute on function agui_internal.news_of_runs(agui.run[]) from public;
