create or replace function agui_internal.json_from_jsonb(document jsonb)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    guarded text := document;
begin
    if strpos(guarded, '"\\#') > 0 then
        guarded := regexp_replace(guarded, '"\\\\#([^"]*)"', '\1', 'g');
    end if;
    return agui_internal.json_unguard(guarded);
end
$function$;

comment on function agui_internal.json_from_jsonb(jsonb) is
    'The JSON text of a jsonb that agui_internal.json_to_jsonb made, patched or not.';

revoke execute on function agui_internal.json_from_jsonb(jsonb) from public;
