create or replace function agui_internal.fold_calls(fold agui_internal.fold)
returns setof agui_internal.fold_call
language plpgsql
stable
parallel safe
rows 1000  -- otherwise a join would be planned for one row
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        message.position,
        message.message_id,
        call.position,
        (call.value -> 'id')::text,
        (function.value -> 'name')::text,
        (function.value -> 'arguments')::text
    from agui_internal.fold_messages(fold, array['assistant']) as message
    cross join lateral json_array_elements(
        case when json_typeof(message.body -> 'toolCalls') = 'array' then message.body -> 'toolCalls' end
    ) with ordinality as call (value, position)
    cross join lateral (
        select case when json_typeof(call.value -> 'function') = 'object' then call.value -> 'function' end
    ) as function (value)
    where json_typeof(call.value) = 'object';
end
$$;

comment on function agui_internal.fold_calls(agui_internal.fold) is
    'The tool calls of the assistant messages of a fold, in order.';

revoke execute on function agui_internal.fold_calls(agui_internal.fold) from public;
