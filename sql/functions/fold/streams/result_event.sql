create or replace function agui_internal.result_event(body text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return agui_internal.json_unguard((
    select '{"type":"TOOL_CALL_RESULT","messageId":' || (guarded -> 'id')::text
        || ',"toolCallId":' || (guarded -> 'toolCallId')::text
        || ',"content":' || (guarded -> 'content')::text
        || coalesce(',"role":' || (guarded -> 'role')::text, '')
        || coalesce(',"subagentRunId":' || (guarded -> 'subagentRunId')::text, '')
        || coalesce(',"metadata":' || (guarded -> 'metadata')::text, '')
        || '}'
    from agui_internal.json_guarded(body::json) as guarded
    where guarded ->> 'role' = 'tool'
        and not exists (
            select
            from json_object_keys(guarded) as member (name)
            where member.name <> all (array['id', 'role', 'toolCallId', 'content', 'subagentRunId', 'metadata'])
        )
));

comment on function agui_internal.result_event(text) is
    'The TOOL_CALL_RESULT that makes a message; null: none does.';

revoke execute on function agui_internal.result_event(text) from public;
