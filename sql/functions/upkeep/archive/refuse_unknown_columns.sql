create or replace function agui_internal.refuse_unknown_columns(table_name text, columns text[])
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    unknown text;
begin
    select string_agg(given.name, ', ') into unknown
    from unnest(columns) as given (name)
    where not exists (
        select
        from agui_internal.archived_tables() as kept
        where kept.name = refuse_unknown_columns.table_name and given.name = any (kept.columns)
    );
    if unknown is not null then
        raise exception using
            errcode = '42703',
            message = format('the archive has columns of %s that this database does not have: %s', table_name, unknown),
            hint = 'A newer version wrote the archive. Run "pgagui migrate up" of that version first.';
    end if;
end
$$;

comment on function agui_internal.refuse_unknown_columns(text, text[]) is
    'Raises 42703 for columns of a table that are not those of agui_internal.archived_tables.';

revoke execute on function agui_internal.refuse_unknown_columns(text, text[]) from public;
