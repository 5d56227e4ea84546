create or replace function agui_internal.fold_takes(step agui_internal.fold_step, node agui_internal.fold_node)
returns boolean
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    known json;
begin
    if node.role = 'activity' then
        return step.action = 'patch activity' or step.action = 'show activity' and (step.replaces or step.metadata is not null);
    end if;
    case step.action
        when 'start message' then
            return step.metadata is not null;

        when 'start call' then
            -- It is renamed. A call without a function takes nothing.
            known := coalesce(node.head, node.body);
            return json_typeof(known -> 'function') = 'object'
                and (
                    step.metadata is not null
                    or agui_internal.json_string_token((known #> '{function,name}')::text) is distinct from step.name
                );

        when 'grow' then
            -- An empty piece changes nothing, but for the content of a message that is no string yet.
            if step.is_call then
                return json_typeof(coalesce(node.head, node.body)::json -> 'function') = 'object'
                    and (step.content <> '""' or step.metadata is not null);
            end if;
            return step.content <> '""'
                or step.metadata is not null
                or (coalesce(node.content, (agui_internal.json_guard(node.body)::json -> 'content')::text) ^@ '"') is not true;

        when 'merge', 'encrypt' then
            return true;

        else
            return false;
    end case;
end
$function$;

comment on function agui_internal.fold_takes(agui_internal.fold_step, agui_internal.fold_node) is
    'Whether a step changes a message or tool call that exists.';

revoke execute on function agui_internal.fold_takes(agui_internal.fold_step, agui_internal.fold_node) from public;
