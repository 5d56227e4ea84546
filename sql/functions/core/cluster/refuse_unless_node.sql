create or replace function agui_internal.refuse_unless_node(caller text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.this_node() is null then
        raise exception using
            errcode = '55000',
            message = format('%s: this database is not a node of a cluster', caller),
            hint = 'call agui.join_cluster(…), or "pgagui cluster init".';
    end if;
end
$$;

comment on function agui_internal.refuse_unless_node(text) is
    'Raises 55000 if the database is not a node of a cluster. caller: the function, for the message.';

revoke execute on function agui_internal.refuse_unless_node(text) from public;
