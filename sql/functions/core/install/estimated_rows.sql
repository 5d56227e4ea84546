create or replace function agui_internal.estimated_rows(relation regclass)
returns float8
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select class.reltuples / class.relpages * (pg_relation_size(class.oid) / current_setting('block_size')::int)
    from pg_class as class
    where class.oid = estimated_rows.relation and class.reltuples > 0 and class.relpages > 0
$$;

comment on function agui_internal.estimated_rows(regclass) is
    'The number of rows of a table as the planner estimates it: the rows of a page at the last '
    'vacuum or analyze, times the pages that it has now. Null: there was none.';

revoke execute on function agui_internal.estimated_rows(regclass) from public;
