create or replace function agui_internal.fold_patched(fold agui_internal.fold)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    patched record;
begin
    if cardinality(fold.state_patches) > 0 then
        patched := agui_internal.json_patch_apply(
            agui_internal.json_to_jsonb(fold.state), agui_internal.json_patches(fold.state_patches), agui_internal.limits_of_patches()
        );
        if patched.applied > 0 then
            fold.state := agui_internal.json_from_jsonb(patched.document);
        end if;
        fold.state_patches := '{}';
    end if;
    return fold;
end
$function$;

comment on function agui_internal.fold_patched(agui_internal.fold) is
    'A fold with its patches applied to its state, each whole or, when it fails, not at all.';

revoke execute on function agui_internal.fold_patched(agui_internal.fold) from public;
