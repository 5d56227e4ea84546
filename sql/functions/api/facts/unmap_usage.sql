create or replace function agui.unmap_usage()
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('say where usage is reported');
    -- A step of the job in progress ends first, also the first one. The next one begins with all runs.
    lock table agui_internal.projection in exclusive mode;
    delete from agui_internal.projection;
    delete from agui_internal.usage_mapping;
    return found;
end
$$;

comment on function agui.unmap_usage() is
    'Removes all mappings of agui.map_usage. Returns whether there was one. Requires agui_maintainer. '
    'Errors: 42501 the role has not all scopes.';

revoke execute on function agui.unmap_usage() from public;
