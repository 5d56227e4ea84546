-- Called in inner loops, where pinning the search path would take longer than the work. So every name is
-- qualified, operators too.
create or replace function agui_internal.readable(guarded text)
returns text
language plpgsql
immutable
strict
parallel safe
as $$
begin
    if pg_catalog.strpos(guarded, '\u') operator(pg_catalog.=) 0 then
        return guarded;
    end if;
    return pg_catalog.replace(pg_catalog.regexp_replace(guarded, '\\u(0000|d[89a-f][0-9a-f]{2})', pg_catalog.chr(65533), 'g'), '\u005c', '\');
end
$$;

comment on function agui_internal.readable(text) is
    'The text of a guarded JSON string (agui_internal.json_string_text) with U+FFFD in place of what text '
    'cannot contain.';

revoke execute on function agui_internal.readable(text) from public;
