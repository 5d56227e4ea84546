-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.json_pointer_get(document jsonb, tokens text[])
returns jsonb
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    token text;
begin
    foreach token in array tokens loop
        case jsonb_typeof(document)
            when 'object' then
                document := document -> token;
            when 'array' then
                -- The operators of PostgreSQL also take -1 and 01, the RFC does not.
                if token !~ '^(0|[1-9][0-9]{0,8})$' then
                    return null;
                end if;
                document := document -> token::int;
            else
                return null;
        end case;
    end loop;
    return document;
end
$function$;

comment on function agui_internal.json_pointer_get(jsonb, text[]) is
    'The value that the tokens of a JSON pointer lead to; SQL null when there is none.';

revoke execute on function agui_internal.json_pointer_get(jsonb, text[]) from public;
