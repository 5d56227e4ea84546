create or replace function agui_internal.this_node()
returns text
language sql
stable
parallel safe
-- A constant that is inlined, as in agui_internal.has_row_security: a database that is no node pays
-- nothing. agui_internal.set_node replaces the function.
return null::text;

comment on function agui_internal.this_node() is
    'The name of this node of a cluster; null: the database is of no cluster. agui.join_cluster replaces this function.';

revoke execute on function agui_internal.this_node() from public;
