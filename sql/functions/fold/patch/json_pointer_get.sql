-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_pointer_get(document jsonb, tokens text[])
returns jsonb
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    token pg_catalog.text;
    kind  pg_catalog.text;
begin
    -- In one step if no token is ambiguous as an index: each step copies its result.
    if pg_catalog.array_to_string(tokens, '/') operator(pg_catalog.!~) '(^|/)([[:space:]+-]|0[0-9])|[0-9]{10}' then
        return document operator(pg_catalog.#>) tokens;
    end if;
    foreach token in array tokens loop
        kind := pg_catalog.jsonb_typeof(document);
        if kind operator(pg_catalog.=) 'object' then
            document := document operator(pg_catalog.->) token;
        -- The operators of PostgreSQL also accept -1 and 01; the RFC does not.
        elsif kind operator(pg_catalog.=) 'array' and token operator(pg_catalog.~) '^(0|[1-9][0-9]{0,8})$' then
            document := document operator(pg_catalog.->) token::int;
        else
            return null;
        end if;
    end loop;
    return document;
end
$function$;

comment on function agui_internal.json_pointer_get(jsonb, text[]) is
    'The value at a JSON pointer, given as tokens; SQL null if there is none.';

revoke execute on function agui_internal.json_pointer_get(jsonb, text[]) from public;
