create or replace function agui_internal.fold_new_head(step agui_internal.fold_step, head text)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    function constant text := case when step.is_call then head::json -> 'function' end;
begin
    case step.action
        when 'grow' then
            -- Its string does not exist yet and begins here.
            head := case
                when step.is_call
                    then agui_internal.fold_member(head, 'function', agui_internal.fold_member(function, 'arguments', '"\\content"'))
                else agui_internal.fold_member(head, 'content', '"\\content"')
            end;

        when 'start call' then
            if agui_internal.json_string_token((function::json -> 'name')::text) is distinct from step.name then
                head := agui_internal.fold_member(head, 'function', agui_internal.json_member_set(function, 'name', step.name));
            end if;

        when 'encrypt' then
            head := agui_internal.fold_member(head, 'encryptedValue', step.content);

        when 'show activity' then
            if step.replaces then
                head := agui_internal.fold_member(head, 'activityType', step.activity_type);
                head := agui_internal.fold_member(head, 'content', '"\\content"');
                -- The owner moves to the end if it has changed.
                head := agui_internal.fold_member(head, 'subagentRunId', null);
                head := agui_internal.fold_member(head, 'subagentRunId', step.owner);
            end if;

        when 'patch activity' then
            head := agui_internal.fold_member(head, 'content', '"\\content"');
            head := agui_internal.fold_member(head, 'activityType', step.activity_type);

        else
            null;
    end case;
    return head;
end
$function$;

comment on function agui_internal.fold_new_head(agui_internal.fold_step, text) is
    'The head (agui_internal.fold_open) of an existing message or tool call after a step, without '
    'the metadata of the step.';

revoke execute on function agui_internal.fold_new_head(agui_internal.fold_step, text) from public;
