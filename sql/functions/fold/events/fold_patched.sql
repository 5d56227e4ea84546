create or replace function agui_internal.fold_patched(fold agui_internal.fold, limits agui_internal.fold_limits default null)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    patched   record;
    state     text;
    is_unread boolean;
begin
    if cardinality(fold.state_patches) > 0 then
        limits := coalesce(limits, agui_internal.limits_of_folds(agui_internal.rules()));
        state := agui_internal.json_guard(fold.state);
        is_unread := agui_internal.json_has_too_many_elements(state, limits.document_bytes);
        patched := agui_internal.json_patch_apply(
            case when is_unread then '0' else agui_internal.json_guard_numbers(state)::jsonb end,
            agui_internal.json_patches(fold.state_patches, limits.document_bytes),
            limits,
            limits.fold_fuel - fold.spent,
            false,
            is_unread
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
