-- Roles without login, to be granted to those that connect: agui_reader reads; agui_writer appends, agui_worker runs the jobs, agui_maintainer erases,
-- repairs and imports, and each of the three reads, too.
-- Roles belong to the whole server: they stay when the schema goes, and other databases may use them.
call agui.grant_access();
