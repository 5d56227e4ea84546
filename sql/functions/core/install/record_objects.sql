create or replace procedure agui_internal.record_objects()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from agui_internal.installed_object;
    insert into agui_internal.installed_object
    select * from agui_internal.catalog_objects();
end
$$;

comment on procedure agui_internal.record_objects() is
    'Records the current definitions of the objects of the install, for '
    'agui_internal.changed_objects(). The migrations call it.';

revoke execute on procedure agui_internal.record_objects() from public;
