-- pg_dump leaves out what an extension has in its tables, unless it is marked. The record of the install is made with the extension.
do $$
declare
    name regclass;
begin
    for name in
        select oid
        from pg_catalog.pg_class
        where relkind = 'r' and relnamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
            and relname not in ('schema_migrations', 'installed_object', 'uptime')
    loop
        perform pg_catalog.pg_extension_config_dump(name, '');
    end loop;
end
$$;

-- pg_restore makes the extension, which has its settings and its salt, and then brings those of the dump.
create or replace function agui_internal.restore_row()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_table_name = 'setting' then
        update agui_internal.setting set value = new.value where name = new.name;
    else
        update agui_internal.erasure_salt set salt = new.salt;
    end if;
    return case when found then null else new end;
end
$$;

comment on function agui_internal.restore_row() is
    'Trigger of an install as extension: a row that pg_restore brings takes the place of the one that the extension has.';

revoke execute on function agui_internal.restore_row() from public;

create or replace trigger restore_row before insert on agui_internal.setting
for each row execute function agui_internal.restore_row();

create or replace trigger restore_row before insert on agui_internal.erasure_salt
for each row execute function agui_internal.restore_row();
