create or replace function agui_internal.tool_error(error json, content json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    text constant text := agui_internal.json_string_text(content::text);
begin
    return left(
        case
            when error::text not in ('null', 'false', '""') then coalesce(agui_internal.json_string_text(error::text), error::text)
            -- What LangGraph and the servers of MCP write. Nothing else is taken for a failure.
            when text ~ '^Error\M' or text ~ '^\s*\{' and text ~ '^\s*\{\s*"error"\s*:\s*(?!\s|null|false|"")|"isError"\s*:\s*true' then text
        end,
        1000
    );
end
$$;

comment on function agui_internal.tool_error(json, json) is
    'What failed, according to the members of a result of a tool call (TOOL_CALL_RESULT or a tool '
    'message, guarded): error; else content, if that begins with the word Error or is an object that '
    'begins with a member error or has "isError": true. Null: nothing failed. The first 1000 '
    'characters.';

revoke execute on function agui_internal.tool_error(json, json) from public;
