create or replace function agui_internal.fold_patched(fold agui_internal.fold, limits agui_internal.fold_limits default null)
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
        limits := coalesce(limits, agui_internal.limits_of_folds());
        patched := agui_internal.json_patch_apply(
            agui_internal.json_to_jsonb(fold.state),
            agui_internal.json_patches(fold.state_patches),
            limits,
            limits.fold_fuel - fold.spent,
            false
        );
        if patched.last_applied > 0 then
            fold.state := agui_internal.json_from_jsonb(patched.document);
        end if;
        fold.state_patches := '{}';
        fold.spent := fold.spent + patched.spent;
    end if;
    return fold;
end
$function$;

comment on function agui_internal.fold_patched(agui_internal.fold, agui_internal.fold_limits) is
    'Applies the patches of a fold to its state. A patch with a failing operation has no effect. '
    'limits: null reads them.';

revoke execute on function agui_internal.fold_patched(agui_internal.fold, agui_internal.fold_limits) from public;
