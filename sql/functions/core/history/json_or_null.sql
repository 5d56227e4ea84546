-- Before PostgreSQL 17 a parallel query cannot catch errors, so this is not parallel safe.
create or replace function agui_internal.json_or_null(document text)
returns json
language plpgsql
immutable
strict
set search_path = pg_catalog, pg_temp
as $$
begin
    return document::json;
exception
    when data_exception or statement_too_complex then
        return null;
end
$$;

comment on function agui_internal.json_or_null(text) is
    'Text as JSON; null if it is not valid JSON.';

revoke execute on function agui_internal.json_or_null(text) from public;
