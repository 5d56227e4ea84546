-- Makes an extension of what migrations have installed.
do $$
declare
    wanted constant int := %[1]d;
    object record;
begin
    if (agui_internal.installed()).version <> wanted then
        raise exception 'the schema agui has version %%, these files are of version %%', (agui_internal.installed()).version, wanted
            using hint = 'First run "pgagui migrate up" of the version that made the files.';
    end if;
    for object in
        select identity.type, identity.identity
        from (
            select 'pg_catalog.pg_namespace'::regclass, oid
            from pg_catalog.pg_namespace
            where oid in ('agui'::regnamespace, 'agui_internal'::regnamespace)
            union all
            select 'pg_catalog.pg_class'::regclass, oid
            from pg_catalog.pg_class
            where relkind in ('r', 'v', 'S') and relname <> 'schema_migrations'
                and relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
            union all
            select 'pg_catalog.pg_proc'::regclass, oid
            from pg_catalog.pg_proc
            where pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
            union all
            select 'pg_catalog.pg_type'::regclass, type.oid
            from pg_catalog.pg_type as type
            left join pg_catalog.pg_class as class on class.oid = typrelid
            where typnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
                and (typtype in ('d', 'e') or relkind = 'c')
        ) as member (class, oid)
        cross join lateral pg_catalog.pg_identify_object(member.class, member.oid, 0) as identity
    loop
        execute format('alter extension pgagui add %%s %%s',
            case object.type when 'composite type' then 'type' else object.type end, object.identity);
    end loop;
end
$$;
