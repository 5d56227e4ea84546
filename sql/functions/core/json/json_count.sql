create or replace function agui_internal.json_count(value json)
returns bigint
language sql
immutable
parallel safe
-- The first test bounds what the cast to numeric must read: 1e400000 would raise an error.
return case
    when json_typeof(value) = 'number' and length(value::text) <= 40 and value::text !~ '[eE][-+]?[0-9]{3}'
    then case
        -- Not "between", which a dump writes in another way.
        when value::text::numeric >= 0 and value::text::numeric <= 9007199254740991 and value::text::numeric = trunc(value::text::numeric)
        then value::text::numeric::bigint
    end
end;

comment on function agui_internal.json_count(json) is
    'A JSON value as a whole number from 0 to 2^53 - 1, the range in which every client reads the '
    'same number. Null for any other value.';

revoke execute on function agui_internal.json_count(json) from public;
