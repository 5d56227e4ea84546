create or replace function agui_internal.fold_new_message(
    in step agui_internal.fold_step,
    in id text,
    in owner text,
    out role text,
    out body text,
    out head text,
    out content text
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    role := case step.action
        when 'show activity' then '"activity"'
        when 'start call' then '"assistant"'
        when 'add message' then (step.content::json -> 'role')::text
        else step.role
    end;
    case step.action
        when 'start message' then
            content := '""';
            head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"content":"\\content"', '"name":' || step.name, '"subagentRunId":' || owner
            ) || '}';

        when 'start call' then
            head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"toolCalls":"\\calls"', '"subagentRunId":' || owner
            ) || '}';

        when 'show activity' then
            content := step.content;
            head := '{' || concat_ws(
                ',', '"id":' || id, '"role":' || role, '"activityType":' || step.activity_type, '"content":"\\content"',
                '"subagentRunId":' || owner
            ) || '}';

        when 'add result' then
            body := agui_internal.json_unguard('{' || concat_ws(
                ',', '"id":' || id, '"toolCallId":' || step.id, '"role":' || role, '"content":' || step.content, '"subagentRunId":' || owner
            ) || '}');

        when 'add message' then
            body := agui_internal.json_unguard(step.content);
    end case;
    role := agui_internal.json_string_text(role);
end
$function$;

comment on function agui_internal.fold_new_message(agui_internal.fold_step, text, text) is
    'The message that a step adds, with this id and owner (its subagentRunId). Its members have '
    'the names and the order of the official client. The result is body, or head and content '
    '(agui_internal.fold_open).';

revoke execute on function agui_internal.fold_new_message(agui_internal.fold_step, text, text) from public;
