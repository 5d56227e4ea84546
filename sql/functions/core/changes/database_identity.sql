create or replace function agui_internal.database_identity()
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select split_part(agui_internal.epoch(), '/', 1) || '/' || database.oid
    from pg_database as database
    where database.datname = current_database()
$$;

comment on function agui_internal.database_identity() is
    'The cluster and the database, which stay the same in a standby that is promoted and after a '
    'restore to a point in time, and are others where a dump is restored. A physical copy that is '
    'promoted has the same, too. If the server does not say which cluster it is (agui_internal.epoch), '
    'only the database is compared.';

revoke execute on function agui_internal.database_identity() from public;
