create or replace function agui_internal.timeline()
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return left(pg_walfile_name(pg_current_wal_lsn()), 8);
exception
    when others then
        return null;  -- some managed services lack these functions
end
$$;

comment on function agui_internal.timeline() is
    'The timeline of the write-ahead log, which changes when a standby is promoted; null: this '
    'server does not provide it.';

revoke execute on function agui_internal.timeline() from public;
