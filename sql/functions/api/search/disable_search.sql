create or replace function agui.disable_search()
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was_on boolean;
begin
    perform agui_internal.refuse_unless_operator('turn search off');
    delete from agui_internal.search;
    was_on := found;
    truncate agui.message_text;
    return was_on;
end
$$;

comment on function agui.disable_search() is
    'Turns agui.search off and removes what it needs. Returns whether it was on. Requires agui_maintainer. '
    'Errors: 42501 the role has not all scopes.';

revoke execute on function agui.disable_search() from public;
