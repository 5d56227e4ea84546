create or replace view agui.setting as
select name, value, unit, default_value, min_value, max_value, description
from agui_internal.setting;

comment on view agui.setting is
    'The settings of this database: leases and limits. agui.set_setting changes them.';
comment on column agui.setting.value is 'Current value, in the unit.';
comment on column agui.setting.unit is 'seconds, bytes or count.';
comment on column agui.setting.default_value is 'Default value.';
comment on column agui.setting.min_value is 'Smallest permitted value.';
comment on column agui.setting.max_value is 'Largest permitted value.';
comment on column agui.setting.description is 'Effect of the setting.';
