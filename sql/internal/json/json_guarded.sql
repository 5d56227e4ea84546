create or replace function agui_internal.json_guarded(document json)
returns json
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    plain constant text := document;
    guarded constant text := agui_internal.json_guard(plain);
begin
    -- To make json of text checks it, which takes as long as to read it.
    return case when guarded = plain then document else guarded::json end;
end
$function$;

comment on function agui_internal.json_guarded(json) is 'JSON as agui_internal.json_guard rewrites it.';

revoke execute on function agui_internal.json_guarded(json) from public;
