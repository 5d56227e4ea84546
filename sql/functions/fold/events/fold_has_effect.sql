-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_has_effect(step agui_internal.fold_step, node agui_internal.fold_node)
returns boolean
language sql
immutable
parallel safe
return case
    when node.role = 'activity'
        then step.action = 'patch activity' or step.action = 'show activity' and (step.replaces or step.metadata is not null)
    when step.action = 'start message' then step.metadata is not null
    when step.action = 'start call' then node.name <> '' and (step.metadata is not null or node.name <> step.name)
    when step.action = 'grow' and step.content = '""' and step.metadata is null then node.parent is null and not node.has_text
    when step.action = 'grow' then node.parent is null or node.name <> ''
    else step.action in ('merge', 'encrypt')
end;

comment on function agui_internal.fold_has_effect(agui_internal.fold_step, agui_internal.fold_node) is
    'Whether a step changes an existing message or tool call, whose name or has_text is known if '
    'the step depends on it.';

revoke execute on function agui_internal.fold_has_effect(agui_internal.fold_step, agui_internal.fold_node) from public;
