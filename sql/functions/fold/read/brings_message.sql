create or replace function agui_internal.brings_message(run agui.run, message_id text, wanted text, after_seq bigint)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- How JSON text spells the id, unless it uses escapes that it need not use. Those of ASCII
    -- characters begin with \u00.
    spelled constant text := substr(to_json(message_id)::text, 2, length(to_json(message_id)::text) - 2);
    escaped constant text := case when message_id ~ '[^\x01-\x7f]' then '\u' else '\u00' end;
    slashed constant boolean := strpos(message_id, '/') > 0;
begin
    if exists (
        select
        from agui.run_input as stored
        left join lateral jsonb_to_recordset(stored.sections) as section (kind text, part_nos int4range[])
            on section.kind = 'message'
        -- The messages may stay in the skeleton.
        cross join lateral (
            select case
                when section.part_nos is null
                    then coalesce(stored.input::text, agui_internal.joined_input(stored.thread_key, stored.skeleton, stored.sections))
            end as text
        ) as input
        where stored.thread_key = run.thread_key
            and stored.run_no = run.run_no
            and case
                when input.text is null then exists (
                    select
                    from agui_internal.parts_in(stored.thread_key, 'message', section.part_nos) as part
                    where part.message_id = wanted
                )
                else (
                    strpos(input.text, spelled) > 0
                    or strpos(input.text, escaped) > 0
                    or slashed and strpos(input.text, '\/') > 0
                ) and agui_internal.lists_message(agui_internal.json_guarded(input.text::json) -> 'messages', wanted)
            end
    ) then
        return true;
    end if;

    return exists (
        select
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui_internal.batches_behind(run.thread_key, greatest(brings_message.after_seq, run.first_seq - 1)) as stored
            where stored.first_seq <= coalesce(run.last_seq, 9223372036854775807)
                and stored.run_no = run.run_no
                and (
                    strpos(stored.events::text, spelled) > 0
                    or strpos(stored.events::text, escaped) > 0
                    or slashed and strpos(stored.events::text, '\/') > 0
                )
            offset 0  -- parse only what passed these tests
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events) as (
                type text, "messageId" json, "parentMessageId" json, "toolCallId" json, messages json, input json
            )
        ) with ordinality as event (type, message_id, parent_id, call_id, messages, input, position)
        where batch.first_seq + event.position - 1 > brings_message.after_seq
            and case
                when event.type = 'MESSAGES_SNAPSHOT' then agui_internal.lists_message(event.messages, wanted)
                when event.type = 'RUN_STARTED' then
                    json_typeof(event.input) = 'object' and agui_internal.lists_message(event.input -> 'messages', wanted)
                -- A call without a parent makes a message with its own id, and so does one whose parent
                -- is not a message of the assistant. Only the fold knows that; it is done once.
                when event.type = any (agui_internal.event_types('brings parentMessageId')) then
                    coalesce(nullif(agui_internal.json_string_text(event.parent_id::text), ''), agui_internal.json_string_text(event.call_id::text)) = wanted
                    or agui_internal.json_string_text(event.call_id::text) = wanted
                        and wanted = any ((select (agui_internal.fold_at(run, null)).message_ids)::text[])
                when event.type = any (agui_internal.event_types('brings messageId')) then
                    agui_internal.json_string_text(event.message_id::text) = wanted
            end
    );
end
$$;

comment on function agui_internal.brings_message(agui.run, text, text, bigint) is
    'Whether the input of a run, or its events after after_seq, bring a message with an id. wanted '
    'is the id as the fold decodes it. A test of the text keeps most batches from being parsed.';

revoke execute on function agui_internal.brings_message(agui.run, text, text, bigint) from public;
