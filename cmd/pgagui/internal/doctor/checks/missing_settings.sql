-- the settings of pgagui have their rows
select
    'warning' as severity,
    format(
        'rows of agui.setting are missing, as after a restore without data, so the defaults hold and cannot be changed: %s',
        pg_catalog.string_agg(known.name, ', ' order by known.name)
    ) as problem,
    'call agui.grant_access()' as advice
from agui_internal.known_settings() as known
where not exists (select from agui_internal.setting as setting where setting.name = known.name)
having count(*) > 0
