create or replace function agui_internal.json_to_jsonb(document text)
returns jsonb
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return agui_internal.json_guard_numbers(agui_internal.json_guard(document))::jsonb;
end
$function$;

comment on function agui_internal.json_to_jsonb(text) is
    'Any JSON text as jsonb, guarded (agui_internal.json_guard, agui_internal.json_guard_numbers). '
    'It never fails, and agui_internal.json_from_jsonb restores the text.';

revoke execute on function agui_internal.json_to_jsonb(text) from public;
