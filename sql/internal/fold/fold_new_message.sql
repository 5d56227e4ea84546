create or replace function agui_internal.fold_new_message(step agui_internal.fold_step, id text, owner text)
returns agui_internal.fold_node
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    role constant text := case step.action
        when 'show activity' then '"activity"'
        when 'start call' then '"assistant"'
        when 'add message' then (step.content::json -> 'role')::text
        else step.role
    end;
    made agui_internal.fold_node;
begin
    made.key := id;
    made.role := agui_internal.json_string_text(role);
    case step.action
        when 'start message' then
            made.content := '""';
            made.head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"content":"\\content"', '"name":' || step.name, '"subagentRunId":' || owner
            ) || '}';

        when 'start call' then
            made.head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"toolCalls":"\\calls"', '"subagentRunId":' || owner
            ) || '}';

        when 'show activity' then
            made.content := step.content;
            made.activity_type := step.activity_type;
            made.head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"activityType":' || step.activity_type, '"content":"\\content"',
                '"subagentRunId":' || owner
            ) || '}';

        when 'add result' then
            made.body := agui_internal.json_unguard('{' || concat_ws(
                ',', '"id":' || id, '"toolCallId":' || step.id, '"role":' || role, '"content":' || step.content, '"subagentRunId":' || owner
            ) || '}');

        when 'add message' then
            made.body := agui_internal.json_unguard(step.content);
    end case;
    return made;
end
$function$;

comment on function agui_internal.fold_new_message(agui_internal.fold_step, text, text) is
    'The message that a step adds, with this id and owner (its subagentRunId). Its parts have the names and the order that the official client gives them.';

revoke execute on function agui_internal.fold_new_message(agui_internal.fold_step, text, text) from public;
