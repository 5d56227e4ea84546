create or replace function agui_internal.refuse_unknown_columns(table_name text, columns text[], known text[])
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- known is null for a table that is not archived.
    if (columns <@ known) is not true then
        raise exception using
            errcode = '42703',
            message = format(
                'the archive has columns of %s that this database does not have: %s', table_name,
                (select string_agg(given.name, ', ') from unnest(columns) as given (name) where (given.name = any (known)) is not true)
            ),
            hint = 'A newer version wrote the archive. Run "pgagui migrate up" of that version first.';
    end if;
end
$$;

comment on function agui_internal.refuse_unknown_columns(text, text[], text[]) is
    'Raises 42703 if an archive has columns of a table that are not among the known ones, those of '
    'agui_internal.archived_tables.';

revoke execute on function agui_internal.refuse_unknown_columns(text, text[], text[]) from public;
