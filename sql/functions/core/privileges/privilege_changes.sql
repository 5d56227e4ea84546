create or replace function agui_internal.privilege_changes()
returns setof text
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with owned as (
        select split_part(owned.object, ' ', 1) as kind, split_part(owned.object, ' ', 2) as name
        from agui_internal.installed() as installed
        cross join unnest(installed.objects) as owned (object)
    ),
    list (object, privilege_suffix, owner, privileges) as (
        select format('schema %I', nspname), '', nspowner, nspacl
        from pg_namespace
        where nspname in ('agui', 'agui_internal')
        union all
        select format('table %s', owned.name), '', class.relowner, class.relacl
        from owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        where owned.kind in ('table', 'view')
        union all
        select format('table %s', owned.name), format(' (%I)', attribute.attname), class.relowner, attribute.attacl
        from owned
        join pg_class as class
            on class.oid = to_regclass(owned.name)
        join pg_attribute as attribute
            on attribute.attrelid = class.oid and attribute.attacl is not null
        where owned.kind in ('table', 'view')
        union all
        select
            format('routine %s', routine.oid::regprocedure), '', routine.proowner,
            coalesce(routine.proacl, acldefault('f', routine.proowner))
        from owned
        join pg_namespace as namespace
            on namespace.nspname = split_part(owned.name, '.', 1)
        join pg_proc as routine
            on routine.pronamespace = namespace.oid and routine.proname = split_part(owned.name, '.', 2)
        where owned.kind = 'routine'
    ),
    present as (
        select
            lower(granted.privilege_type) || list.privilege_suffix as privilege,
            list.object,
            case granted.grantee when 0 then 'public' else granted.grantee::regrole::text end as grantee
        from list
        cross join aclexplode(list.privileges) as granted
        where granted.grantor = list.owner
    ),
    expected as (
        select privilege, object, grantee
        from agui_internal.expected_privileges()
        where to_regrole(grantee) is not null
    ),
    change (statement) as (
        select format('revoke %s on %s from %s', privilege, object, string_agg(grantee, ', ' order by grantee))
        from (
            select * from present
            where grantee in ('public', 'agui_reader', 'agui_writer', 'agui_worker', 'agui_maintainer', 'agui_recorder', 'agui_diagnoser', 'pg_monitor')
            except
            select * from expected
        ) as surplus
        group by privilege, object
        union all
        select format('grant %s on %s to %s', privilege, object, string_agg(grantee, ', ' order by grantee))
        from (select * from expected except select * from present) as missing
        group by privilege, object
    )
    select change.statement
    from change
    order by change.statement
$$;

comment on function agui_internal.privilege_changes() is
    'The statements that change the privileges on the objects of the install to those of '
    'agui_internal.expected_privileges(), for the roles that exist. Privileges of other roles are '
    'not changed.';

revoke execute on function agui_internal.privilege_changes() from public;
