create or replace function agui_internal.json_guarded_from_jsonb(document jsonb)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    guarded constant text := document;
begin
    return case when strpos(guarded, '"\\#') > 0 then regexp_replace(guarded, '"\\\\#([^"]*)"', '\1', 'g') else guarded end;
end
$function$;

comment on function agui_internal.json_guarded_from_jsonb(jsonb) is
    'The guarded JSON text of a jsonb that agui_internal.json_to_jsonb made, patched or not.';

revoke execute on function agui_internal.json_guarded_from_jsonb(jsonb) from public;
