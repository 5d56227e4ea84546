create or replace function agui.rebuild_facts()
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('have all facts computed again');
    delete from agui_internal.projection;
end
$$;

comment on function agui.rebuild_facts() is
    'Makes the next call of agui.project() read all runs, and replace what is stored of them. '
    'Until then the facts stay as they are. '
    'Errors: 42501 the role has not all scopes.';

revoke execute on function agui.rebuild_facts() from public;
