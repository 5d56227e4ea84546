create or replace function agui_internal.json_patch_agg_result(patches jsonb[])
returns jsonb
language sql
immutable
strict
parallel safe
return agui_internal.json_patch_all('{}', patches);

comment on function agui_internal.json_patch_agg_result(jsonb[]) is
    'The final function of agui.json_patch_agg: applies the collected patches.';

revoke execute on function agui_internal.json_patch_agg_result(jsonb[]) from public;
