create or replace view agui.setting as
select name, value, unit, default_value, min_value, max_value, description
from agui_internal.setting;

comment on view agui.setting is 'The settings of this database, leases and limits. agui.set_setting changes them.';
comment on column agui.setting.value is 'What holds now, in the unit.';
comment on column agui.setting.unit is 'seconds, bytes or count.';
comment on column agui.setting.default_value is 'What holds unless somebody changes it.';
comment on column agui.setting.min_value is 'The least value that it takes.';
comment on column agui.setting.max_value is 'The greatest value that it takes.';
comment on column agui.setting.description is 'What it does.';
