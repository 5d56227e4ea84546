create or replace function agui_internal.sampled_percent(relation regclass)
returns real
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case when size.pages > 1000 then (100000.0 / size.pages)::real end
    from (select pg_relation_size(sampled_percent.relation) / current_setting('block_size')::int as pages) as size
$$;

comment on function agui_internal.sampled_percent(regclass) is
    'The percentage of the pages of a table to read for an estimate: 1,000 pages, whatever its '
    'size. Null: it has no more pages, so read all.';

revoke execute on function agui_internal.sampled_percent(regclass) from public;
