-- the privileges on the objects of the install are those that the migrations grant
select
    'error' as severity,
    count(*) || ' privileges differ from the list of the install, among them what this would change: ' || min(change) as problem,
    'call agui.grant_access(), or pgagui migrate up' as advice
from agui_internal.privilege_changes() as change
having count(*) > 0
