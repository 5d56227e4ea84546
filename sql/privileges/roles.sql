-- Roles without login, to be granted to those that connect: agui_reader reads, agui_writer appends and compacts as well,
-- agui_maintainer also repacks and erases.
-- Roles belong to the whole server: they stay when the schema goes, and other databases may use them.
call agui.grant_access();
