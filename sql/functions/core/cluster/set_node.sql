create or replace function agui_internal.set_node(name text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if name is distinct from agui_internal.this_node() then
        execute format(
            'create or replace function agui_internal.this_node() returns text language sql stable parallel safe return %L::text', name
        );
    end if;
end
$$;

comment on function agui_internal.set_node(text) is
    'Makes agui_internal.this_node() return this name (null: none). It changes the function only if it differs.';

revoke execute on function agui_internal.set_node(text) from public;
