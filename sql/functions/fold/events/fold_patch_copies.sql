create or replace function agui_internal.fold_patch_copies(patch text)
returns boolean
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return patch ~ '"copy"|\\u00'
        and exists (
            select
            from json_array_elements(patch::json) as operation (value)
            where json_typeof(operation.value) = 'object' and operation.value ->> 'op' = 'copy'
        );
end
$function$;

comment on function agui_internal.fold_patch_copies(text) is
    'Whether a JSON patch (guarded JSON text, an array) has an operation "copy".';

revoke execute on function agui_internal.fold_patch_copies(text) from public;
