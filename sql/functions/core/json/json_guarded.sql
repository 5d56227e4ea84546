-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
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
    -- A cast from text to json validates it, which takes as long as reading it.
    return case when guarded operator(pg_catalog.=) plain then document else guarded::pg_catalog.json end;
end
$function$;

comment on function agui_internal.json_guarded(json) is 'JSON as agui_internal.json_guard rewrites it.';

revoke execute on function agui_internal.json_guarded(json) from public;
