create or replace function agui_internal.fold_call_name(call text, large text[])
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    function constant json := agui_internal.fold_fill(call, large)::json -> 'function';
begin
    return case
        when json_typeof(function) = 'object' then coalesce(agui_internal.json_string_token((function -> 'name')::text), 'null')
        else ''
    end;
end
$function$;

comment on function agui_internal.fold_call_name(text, text[]) is
    'The name of a tool call (guarded JSON text, or the head of one) as JSON; empty if it has no '
    'function.';

revoke execute on function agui_internal.fold_call_name(text, text[]) from public;
