create or replace function agui_internal.row_as_json(columns text[])
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select 'json_build_array(' || string_agg(format('stored.%I::text', listed.name), ', ' order by listed.place) || ')'
    from unnest(columns) with ordinality as listed (name, place)
$$;

comment on function agui_internal.row_as_json(text[]) is
    'An expression that gives a row called stored as a JSON array of the texts of these columns.';

revoke execute on function agui_internal.row_as_json(text[]) from public;
