create or replace function agui_internal.fold_calls_of(message text)
returns table (id text, body text)
language plpgsql
immutable
parallel safe
rows 5
set search_path = pg_catalog, pg_temp
as $function$
begin
    return query
    select
        case when call.id ^@ '"' then call.id end,
        call.body
    from (
        select
            agui_internal.json_string_token((element.value -> 'id')::text) as id,
            element.value::text as body,
            element.position
        from (select message::json -> 'toolCalls' as list offset 0) as calls
        cross join lateral json_array_elements(case when calls.list::text ^@ '[' then calls.list else '[]' end) with ordinality as element (value, position)
    ) as call
    order by call.position;
end
$function$;

comment on function agui_internal.fold_calls_of(text) is
    'The tool calls of a message (guarded JSON text) in order; an id that is not a string is null.';

revoke execute on function agui_internal.fold_calls_of(text) from public;
