create or replace function agui_internal.fold_message_list(messages json)
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    -- Most lists contain neither, so no message needs to be parsed.
    has_owners constant boolean := strpos(messages::text, 'subagentRunId') > 0 or strpos(messages::text, '\u') > 0;
begin
    return array(
        select case
            when json_typeof(message.value) = 'string' then '{"role":"user","content":' || message.value || '}'
            when has_owners and (message.value -> 'subagentRunId')::text = 'null'
                then agui_internal.json_member_set(message.value::text, 'subagentRunId', null)
            else message.value::text
        end
        from json_array_elements(messages) with ordinality as message (value, position)
        where json_typeof(message.value) in ('object', 'string')
        order by message.position
    );
end
$function$;

comment on function agui_internal.fold_message_list(json) is
    'The messages of a list in an event (guarded JSON). A plain string is a user message without '
    'an id. A subagentRunId that is null is left out, and so is a value that is not a message.';

revoke execute on function agui_internal.fold_message_list(json) from public;
