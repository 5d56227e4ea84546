-- Roles without login, to be granted to those that connect. agui_reader reads; agui_writer appends;
-- agui_worker runs the jobs; agui_maintainer erases, repairs and imports. Each of the last three
-- can also read. agui_recorder appends, sends heartbeats and polls, and nothing else.
-- Roles belong to the whole server: they remain when the schema is removed, and other databases may
-- use them.
call agui.grant_access();
