create or replace function agui_internal.limits_of_folds()
returns agui_internal.fold_limits
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    limits agui_internal.fold_limits;
begin
    select
        max(setting.value) filter (where setting.name = 'document_bytes'),
        max(setting.value) filter (where setting.name = 'document_depth'),
        max(setting.value) filter (where setting.name = 'patch_operations'),
        max(setting.value) filter (where setting.name = 'patch_copied_bytes'),
        max(setting.value) filter (where setting.name = 'patch_shifted_items'),
        max(setting.value) filter (where setting.name = 'fold_bytes'),
        max(setting.value) filter (where setting.name = 'fold_messages'),
        max(setting.value) filter (where setting.name = 'fold_lanes'),
        max(setting.value) filter (where setting.name = 'fold_fuel')
    into limits
    from agui_internal.setting as setting;
    return limits;
end
$$;

comment on function agui_internal.limits_of_folds() is
    'The limits of folds and of JSON patches, from the settings.';

revoke execute on function agui_internal.limits_of_folds() from public;
