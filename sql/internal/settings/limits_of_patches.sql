create or replace function agui_internal.limits_of_patches()
returns agui_internal.patch_limits
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    limits agui_internal.patch_limits;
begin
    select
        max(setting.value) filter (where setting.name = 'document_bytes'),
        max(setting.value) filter (where setting.name = 'document_depth'),
        max(setting.value) filter (where setting.name = 'patch_operations'),
        max(setting.value) filter (where setting.name = 'patch_copied_bytes'),
        max(setting.value) filter (where setting.name = 'patch_shifted_items')
    into limits
    from agui_internal.setting as setting;
    return limits;
end
$$;

comment on function agui_internal.limits_of_patches() is
    'The limits of JSON patches, from the settings. A fold reads them once, when it comes to its first patch.';

revoke execute on function agui_internal.limits_of_patches() from public;
