-- Only for sqlc, which does not read the "do" block that creates the schemas in
-- sql/schema/000001_tables.up.sql.
create schema agui;
create schema agui_internal;
