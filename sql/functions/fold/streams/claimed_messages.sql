-- The verifier of a client assigns a message to the agent that began it in the current run, and
-- forgets that when a run starts. So a replay that starts the run states this for messages of
-- subagents. For a message that a client already has, the input has no other effect.
create or replace function agui_internal.claimed_messages(run agui.run, until bigint, fold agui_internal.fold)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (
        with tagged as materialized (
            select place.id, place.role, agui_internal.json_string_text(place.owner) as owner, place.owner as owner_token, place.position
            from (
                select
                    message.id,
                    message.role,
                    message.position,
                    (agui_internal.json_guarded(message.body::json) -> 'subagentRunId')::text as owner
                from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality as message (id, role, body, position)
                where message.id is not null and strpos(message.body, 'subagentRunId') > 0
            ) as place
            where place.owner ^@ '"'
        ),
        event as (
            select element.*
            from (
                select stored.first_seq, agui_internal.json_guarded(stored.events) as events
                from agui.batch as stored
                where exists (select from tagged)
                    and stored.thread_key = run.thread_key
                    and stored.run_no = run.run_no
                    and stored.first_seq between run.first_seq and coalesce(until, 9223372036854775807)
                    and strpos(stored.events::text, 'subagentRunId') > 0
                offset 0
            ) as batch
            cross join lateral rows from (
                json_to_recordset(batch.events) as ("messageId" json, "subagentRunId" json, messages json)
            ) with ordinality as element (message_id, owner, messages, position)
            where batch.first_seq + element.position - 1 <= coalesce(until, 9223372036854775807)
        ),
        claim as (
            select agui_internal.json_string_text(event.message_id::text) as id, agui_internal.json_string_text(event.owner::text) as owner
            from event
            union
            select
                agui_internal.json_string_text((listed.message -> 'id')::text),
                agui_internal.json_string_text((listed.message -> 'subagentRunId')::text)
            from event
            cross join lateral json_array_elements(case when json_typeof(event.messages) = 'array' then event.messages end) as listed (message)
            where json_typeof(listed.message) = 'object'
        )
        select string_agg(
            agui_internal.json_unguard('{"id":' || to_json(tagged.id) || case tagged.role
                when 'activity' then ',"role":"activity","activityType":"","content":{}'
                when 'reasoning' then ',"role":"reasoning","content":""'
                else ',"role":"assistant"'
            end || ',"subagentRunId":' || tagged.owner_token || '}'),
            ',' order by tagged.position
        )
        from tagged
        join claim on claim.id = tagged.id and claim.owner = tagged.owner
    );
end
$function$;

comment on function agui_internal.claimed_messages(agui.run, bigint, agui_internal.fold) is
    'The messages of a fold that a run has assigned to their subagents, up to a seq, for the input '
    'of a RUN_STARTED: messages without content (JSON texts, joined by commas; null: none).';

revoke execute on function agui_internal.claimed_messages(agui.run, bigint, agui_internal.fold) from public;
