create or replace function agui_internal.limits_of_folds(rules int default 1)
returns agui_internal.fold_limits
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    limits agui_internal.fold_limits;
begin
    perform agui_internal.refuse_other_rules(rules);
    select
        max(limited.value) filter (where limited.name = 'document_bytes'),
        max(limited.value) filter (where limited.name = 'document_depth'),
        max(limited.value) filter (where limited.name = 'patch_operations'),
        max(limited.value) filter (where limited.name = 'patch_copied_bytes'),
        max(limited.value) filter (where limited.name = 'patch_shifted_items'),
        max(limited.value) filter (where limited.name = 'fold_bytes'),
        max(limited.value) filter (where limited.name = 'fold_messages'),
        max(limited.value) filter (where limited.name = 'fold_lanes'),
        max(limited.value) filter (where limited.name = 'fold_fuel')
    into limits
    from (
        select known.name, coalesce(setting.value, known.default_value) as value
        from agui_internal.known_settings() as known
        left join agui_internal.setting as setting using (name)
    ) as limited;
    return limits;
end
$$;

comment on function agui_internal.limits_of_folds(int) is
    'The limits of folds and of JSON patches, from the settings, for a fold by the rules of that '
    'version. Programs from before there were versions give none, and may not fold.';

revoke execute on function agui_internal.limits_of_folds(int) from public;
