create or replace function agui_internal.tool_error(error json, content json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    text text := agui_internal.json_string_text(content::text);
begin
    -- Some agents write the result as JSON, and then as the JSON of that text.
    if text ~ '^\s*"(Error|\s*\{)' and text ~ '^\s*"([^"\\[:cntrl:]]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"\s*$' then
        text := agui_internal.json_string_text(agui_internal.json_guard(btrim(text, e' \t\n\r')));
    end if;
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
    'begins with a member error or has "isError": true, or is the JSON string of such a '
    'text. Null: nothing failed. The first 1000 characters.';

revoke execute on function agui_internal.tool_error(json, json) from public;
