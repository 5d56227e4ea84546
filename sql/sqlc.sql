-- For sqlc alone, which does not look into the "do" block that makes the schema in sql/schema/000001_tables.up.sql.
create schema agui;
create schema agui_internal;
