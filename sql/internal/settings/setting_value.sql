create or replace function agui_internal.setting_value(name text)
returns numeric
language sql
stable
parallel safe
return coalesce(
    (select setting.value from agui_internal.setting as setting where setting.name = setting_value.name),
    (select known.default_value from agui_internal.known_settings() as known where known.name = setting_value.name)
);

comment on function agui_internal.setting_value(text) is 'What a setting is, in its unit: its default where its row is missing.';

revoke execute on function agui_internal.setting_value(text) from public;
