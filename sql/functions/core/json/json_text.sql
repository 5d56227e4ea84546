create or replace function agui_internal.json_text(token text)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    guarded text;
begin
    if not token ^@ '"' then
        return null;
    end if;
    if strpos(token, '\') = 0 then
        return substr(token, 2, length(token) - 2);
    end if;
    -- In a guarded string a backslash begins \u005c or else a character that text cannot contain.
    guarded := agui_internal.json_guard(token)::json #>> '{}';
    return case when strpos(replace(guarded, '\u005c', ''), '\') = 0 then replace(guarded, '\u005c', '\') end;
end
$$;

comment on function agui_internal.json_text(text) is
    'The text of a JSON string. Null for a value that is not a string, and for one with \u0000 or '
    'half a surrogate pair, which text cannot contain.';

revoke execute on function agui_internal.json_text(text) from public;
