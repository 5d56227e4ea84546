create or replace function agui_internal.fold_calls_in(nodes agui_internal.fold_node[], after int)
returns setof agui_internal.fold_node
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select
        case when call.id ^@ '"' then 'call ' || call.id end,
        null::int,
        null::text,
        call.body,
        null::text,
        null::text,
        null::text,
        call.message,
        null::int,
        null::boolean,
        null::boolean,
        null::boolean,
        null::int,
        null::int,
        null::int,
        null::boolean
    from (
        select
            agui_internal.json_string_token((element.value -> 'id')::text) as id,
            element.value::text as body,
            after + message.ordinality::int as message,
            element.position
        from unnest(nodes[after + 1 :]) with ordinality as message
        cross join lateral (
            select coalesce(agui_internal.json_guard(message.body), message.head)::json -> 'toolCalls' as list
            offset 0
        ) as calls
        cross join lateral json_array_elements(case when calls.list::text ^@ '[' then calls.list else '[]' end) with ordinality as element (value, position)
        where message.parent is null
        and message.same_as is null
        and (strpos(coalesce(message.body, message.head), 'toolCalls') > 0 or strpos(coalesce(message.body, message.head), '\u') > 0)
    ) as call
    order by call.message, call.position
$function$;

comment on function agui_internal.fold_calls_in(agui_internal.fold_node[], int) is
    'The tool calls, as nodes, of the messages with higher numbers than a node, in the order of the messages.';

revoke execute on function agui_internal.fold_calls_in(agui_internal.fold_node[], int) from public;
