-- The part of agui_internal.json_guard for text with an escaped backslash or a numeric escape. Most
-- escapes are \n or \", which need no change.
create or replace function agui_internal.json_guard_escapes(document text)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    if document not like '%\\u%' then
        return replace(document, '\\', '\\u005c');
    end if;

    -- From here on a backslash always begins an escape and never ends one.
    document := replace(document, '\\', '\u005c');

    if strpos(document, '\u005c') > 0 or strpos(document, '\u005C') > 0 then
        document := replace(replace(document, '\u005c', '\\u005c'), '\u005C', '\\u005c');
    end if;

    if strpos(document, '\u0000') > 0 then
        document := replace(document, '\u0000', '\\u0000');
    end if;

    -- First all halves, then the pairs are restored. A lookbehind would do both in one pass, but
    -- scans from the start each time.
    if strpos(document, '\ud') > 0 or strpos(document, '\uD') > 0 then
        document := regexp_replace(document, '\\u([dD][89a-fA-F])', '\\\\u\1', 'g');
        document := regexp_replace(document, '\\\\(u[dD][89abAB]..)\\\\(u[dD][c-fC-F]..)', '\\\1\\\2', 'g');

        -- One spelling for each half, so that equal strings stay equal.
        if document ~ '\\\\u[0-9a-f]{0,3}[A-F]' then
            select string_agg(
                case
                    when position = 1 then part
                    else lower(left(part, 4)) || substr(part, 5)
                end,
                '\\u'
                order by position
            )
            into document
            from string_to_table(document, '\\u') with ordinality as parts (part, position);
        end if;
    end if;

    return document;
end
$function$;

comment on function agui_internal.json_guard_escapes(text) is
    'The part of agui_internal.json_guard for text with an escaped backslash or a numeric escape.';

revoke execute on function agui_internal.json_guard_escapes(text) from public;
