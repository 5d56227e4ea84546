-- a role that logs in is a member of a role of pgagui
select
    'note' as severity,
    'no role that logs in is a member of agui_reader, agui_writer, agui_worker, agui_maintainer or agui_recorder: only the owner and superusers can use the schema' as problem,
    'grant agui_writer to the role of the application' as advice
where not exists (
    select
    from pg_catalog.pg_roles as member
    cross join pg_catalog.pg_roles as role
    where role.rolname in ('agui_reader', 'agui_writer', 'agui_worker', 'agui_maintainer', 'agui_recorder')
    and member.rolcanlogin
    and not member.rolsuper
    and pg_catalog.pg_has_role(member.oid, role.oid, 'member')
)
