create or replace function agui_internal.is_chained(scope text)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from agui_internal.chained_scope as chained where chained.is_all or chained.scope = is_chained.scope
    );
end
$$;

comment on function agui_internal.is_chained(text) is
    'Whether the threads of a scope are to be chained from their next run on.';

revoke execute on function agui_internal.is_chained(text) from public;
