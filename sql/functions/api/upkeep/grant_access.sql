create or replace procedure agui.grant_access()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    role       record;
    statement  text;
    left_to_do text[] := '{}';
begin
    for role in
        select *
        from (values
            ('agui_reader', null), ('agui_writer', 'agui_reader'), ('agui_worker', 'agui_reader'), ('agui_maintainer', 'agui_reader'),
            ('agui_recorder', null), ('agui_diagnoser', 'agui_reader')
        ) as role (name, member_of)
    loop
        statement := format('create role %I nologin', role.name);
        begin
            if to_regrole(role.name) is null then
                execute statement;
            end if;
        exception
            when duplicate_object or unique_violation then
                null;  -- another database of the server created it at the same time
            when insufficient_privilege then
                left_to_do := left_to_do || statement;
        end;

        continue when role.member_of is null;
        statement := format('grant %I to %I', role.member_of, role.name);
        begin
            if not pg_has_role(role.name, role.member_of, 'usage') then
                execute statement;
            end if;
        exception
            when unique_violation then
                null;
            when insufficient_privilege or undefined_object then
                left_to_do := left_to_do || statement;
        end;
    end loop;

    -- Like the roles, the settings are missing if only the schema was restored.
    perform agui_internal.define_settings();

    -- Including tables and functions that a migration has just created.
    perform agui_internal.set_row_security(
        exists (select from pg_policy where polrelid = 'agui.thread'::regclass and polname = 'agui_scope')
    );

    perform agui_internal.set_node((select node.name from agui_internal.node as node));

    foreach statement in array array(select agui_internal.privilege_changes()) loop
        execute statement;
    end loop;

    if left_to_do <> '{}' then
        raise warning using
            message = format('the roles of pgagui are incomplete, and %I lacks the privileges to complete them', current_user),
            hint = format('As a role with these privileges, run: %s; call agui.grant_access();', array_to_string(left_to_do, '; '));
    end if;
end
$$;

comment on procedure agui.grant_access() is
    'Creates the roles agui_reader, agui_writer, agui_worker, agui_maintainer, agui_recorder '
    'and agui_diagnoser and their memberships if they are missing, and gives them and pg_monitor exactly the '
    'privileges on the objects of pgagui that they should have. Adds missing settings and, while '
    'row-level security is on, policies that tables lack. Raises a warning about what the caller '
    'may not do. The migrations call it, and so does "pgagui migrate up" if there is nothing to '
    'migrate, for example after a restore on another server.';

revoke execute on procedure agui.grant_access() from public;
