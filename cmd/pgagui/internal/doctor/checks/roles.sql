-- the roles of pgagui exist, and none of them can log in
select
    case when role.rolname is null then 'error' else 'warning' end as severity,
    case
        when role.rolname is null then format('the role %s does not exist, as after a restore on another server, or an install without CREATEROLE', expected.name)
        when role.rolsuper then format('the role %s is a superuser', expected.name)
        else format('the role %s can log in', expected.name)
    end as problem,
    case
        when role.rolname is null and not own.may_create then 'let a superuser run call agui.grant_access(), or an administrator the statements that pgagui migrate up prints'
        when role.rolname is null then 'pgagui migrate up'
        when role.rolsuper then format('alter role %s nosuperuser', expected.name)
        else format('alter role %s nologin, and grant it to the roles that log in', expected.name)
    end as advice
from (values ('agui_reader'), ('agui_writer'), ('agui_worker'), ('agui_maintainer'), ('agui_recorder'), ('agui_diagnoser')) as expected (name)
left join pg_catalog.pg_roles as role
    on role.rolname = expected.name
cross join (
    select rolsuper or rolcreaterole as may_create from pg_catalog.pg_roles where rolname = current_user
) as own
where role.rolname is null or role.rolcanlogin or role.rolsuper
order by expected.name
