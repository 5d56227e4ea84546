-- Roles without login, to be granted to those that connect: agui_reader reads, agui_writer appends and compacts as well,
-- agui_maintainer also repacks and erases.
-- Roles belong to the whole server: they stay when the schema goes, and other databases may use them.
do $$
begin
    if not exists (select from pg_roles where rolname = 'agui_reader') then
        create role agui_reader nologin;
    end if;
    if not exists (select from pg_roles where rolname = 'agui_writer') then
        create role agui_writer nologin in role agui_reader;
    end if;
    if not exists (select from pg_roles where rolname = 'agui_maintainer') then
        create role agui_maintainer nologin in role agui_writer;
    end if;
exception
    when duplicate_object or unique_violation then
        null;  -- another database of the server was migrated at the same time
    when insufficient_privilege then
        raise notice 'the roles agui_reader, agui_writer and agui_maintainer were not created: % may not create roles. '
            'Create them and call agui.grant_access(); until then only the owner of the schema can use it.', current_user;
end
$$;

do $$
begin
    call agui.grant_access();
exception
    when undefined_object then
        null;  -- the notice above says what to do
end
$$;
