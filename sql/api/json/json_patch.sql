create or replace function agui.json_patch(doc jsonb, patch jsonb)
returns jsonb
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    patched record;
begin
    patched := agui_internal.json_patch_apply(doc, array[patch], null, null, false);
    if patched.problem is not null then
        raise exception 'JSON patch: %', patched.problem
            using errcode = 'UI020';
    end if;
    return patched.document;
end
$function$;

comment on function agui.json_patch(jsonb, jsonb) is
    'The document after an RFC 6902 patch (add, remove, replace, move, copy, test), applied whole. An '
    'operation that fails raises UI020 and names the operation and the reason. For many patches on one '
    'document see agui_internal.json_patch_all and agui.json_patch_agg. '
    'Errors: UI020 the patch fails.';

revoke execute on function agui.json_patch(jsonb, jsonb) from public;
