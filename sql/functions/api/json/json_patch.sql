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
    patched := agui_internal.json_patch_apply(doc, array[patch], agui_internal.limits_of_jsonb(), null, false);
    if patched.problem is not null then
        raise exception 'JSON patch: %', patched.problem
            using errcode = 'UI020';
    end if;
    return patched.document;
end
$function$;

comment on function agui.json_patch(jsonb, jsonb) is
    'Applies an RFC 6902 patch (add, remove, replace, move, copy, test) to a document and returns '
    'the result. If an operation fails, nothing is applied, and UI020 names the operation and the '
    'reason. To apply many patches to one document, see agui.json_patch_agg and '
    'agui_internal.json_patch_all. '
    'Errors: UI020 the patch fails.';

revoke execute on function agui.json_patch(jsonb, jsonb) from public;
