-- Called in the innermost loops: to pin the search path would take longer than the work. Every name is qualified instead, operators too.
create or replace function agui_internal.json_guarded(document json)
returns json
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    plain constant pg_catalog.text := document;
    guarded constant pg_catalog.text := agui_internal.json_guard(plain);
begin
    -- To make json of text checks it, which takes as long as to read it.
    return case when guarded operator(pg_catalog.=) plain then document else guarded::pg_catalog.json end;
end
$function$;

comment on function agui_internal.json_guarded(json) is 'JSON as agui_internal.json_guard rewrites it.';

revoke execute on function agui_internal.json_guarded(json) from public;
