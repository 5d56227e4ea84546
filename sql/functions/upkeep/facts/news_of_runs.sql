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

        return query
        with message as materialized (
            select listed.role, listed.id, listed.position, agui_internal.json_guarded(listed.body::json) as body
            from unnest(after.message_ids, after.roles, after.bodies) with ordinality as listed (id, role, body, position)
            where listed.role in ('user', 'assistant', 'tool')
                and listed.body not in (select known.body from unnest(before.bodies) as known (body))
        ),
        event as (
            select
                batch.first_seq + element.position - 1 as seq,
                agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
                member.*
            from agui.batch as batch
            cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
            cross join lateral json_to_record(agui_internal.json_guarded(element.value)) as member (
                type text, "messageId" json, "toolCallId" json, "parentMessageId" json, messages json, input json
            )
            where exists (select from message)
                and batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and run.last_seq
                and agui_internal.brings_messages(batch.events::text)
                and agui_internal.brings_messages(element.value::text)
        ),
        place as (
            select named.id, min(event.seq) as seq, min(event.at) as at
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
            where named.id in (select message.id from message)
            group by named.id
        )
        select
            run.thread_key, run.run_no, coalesce(place.seq, run.first_seq), coalesce(place.at, run.started_at),
            message.role, message.id, agui_internal.text_of_content(message.body -> 'content'),
            case
                when message.role = 'tool' then row (
                    coalesce(place.at, run.started_at), octet_length(agui_internal.json_unguard((message.body -> 'content')::text)),
                    agui_internal.tool_error(message.body -> 'error', message.body -> 'content')
                )::agui_internal.tool_result
            end,
            case when message.role = 'tool' then agui_internal.json_string_text((message.body -> 'toolCallId')::text) end,
            null::text, null::bigint
        from message
        left join place on place.id = message.id
        union all
        (
            -- Of several calls with one id the first counts.
            select distinct on (call.id)
                run.thread_key, run.run_no, null, null, null, call.message_id, null, null,
                call.id,
                agui_internal.json_string_text((call.function -> 'name')::text),
                octet_length(agui_internal.json_unguard((call.function -> 'arguments')::text)) - 2
            from (
                select
                    message.id as message_id, message.position, item.place,
                    agui_internal.json_string_text((item.call -> 'id')::text) as id,
                    item.call -> 'function' as function
                from message
                cross join lateral json_array_elements(
                    case when message.role = 'assistant' and json_typeof(message.body -> 'toolCalls') = 'array' then message.body -> 'toolCalls' end
                ) with ordinality as item (call, place)
                where json_typeof(item.call) = 'object'
            ) as call
            where json_typeof(call.function) = 'object'
            order by call.id, call.position, call.place
        );
    end loop;
end
$$;

comment on function agui_internal.news_of_runs(agui.run[]) is
    'What runs that have ended add to their conversations, according to the fold: messages of users, assistants and '
    'tools, and tool calls. A run that cannot be folded adds nothing.';

revoke execute on function agui_internal.news_of_runs(agui.run[]) from public;
