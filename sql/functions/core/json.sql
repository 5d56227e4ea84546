create or replace function agui_internal.earliest_time()
returns timestamptz
language sql
immutable
parallel safe
return timestamptz '2015-01-01 00:00:00+00';

comment on function agui_internal.earliest_time is
    'The earliest time at which an event is recorded: before it there were no agents, so an earlier time '
    'comes from a clock that was not set. events.EarliestTime is the same in Go.';

create or replace function agui_internal.json_as_string(value json)
returns text
language sql
immutable
strict
parallel safe
return case
    when value::text ^@ '"' then value::text
    else agui_internal.json_guard(to_json(agui_internal.json_unguard(value::text))::text)
end;

comment on function agui_internal.json_as_string is
    'A JSON value (of guarded JSON text) as a JSON string: itself, or a string that contains its '
    'text.';

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

comment on function agui_internal.json_count is
    'A JSON value as a whole number from 0 to 2^53 - 1, the range in which every client reads the '
    'same number. Null for any other value.';

create or replace function agui_internal.json_depth(document text)
returns int
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    brackets text;
begin
    -- Outside of strings (every second part between quotes) only brackets are kept. They come first:
    -- translate searches its list of characters from the left.
    select string_agg(translate(part, E'[]{},: 0123456789.-etrufalsnE+\t\n\r', '[][]'), '' order by position)
    into brackets
    from string_to_table(
        case when strpos(document, '\') = 0 then document else replace(replace(document, '\\', ''), '\"', '') end, '"'
    ) with ordinality as split (part, position)
    where position % 2 = 1;

    -- Most of a document is shallow: each of the first rounds removes the innermost level.
    for level in 0 .. 7 loop
        if brackets = '' then
            return level;
        end if;
        brackets := replace(brackets, '[]', '');
    end loop;

    return 8 + agui_internal.bracket_height(brackets);
end
$$;

comment on function agui_internal.json_depth is
    'The nesting depth of arrays and objects in a valid JSON document.';

create or replace function agui_internal.bracket_height(brackets text)
returns int
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
-- The text is split into stretches of opening brackets followed by closing ones: a single pass at
-- any height.
return (
    select coalesce(max(stretch.before + stretch.opens), 0)
    from (
        select
            strpos(part || ']', ']') - 1 as opens,
            coalesce(
                sum(2 * strpos(part || ']', ']') - 2 - length(part)) over (
                    order by position rows between unbounded preceding and 1 preceding
                ),
                0
            ) as before
        from string_to_table(replace(brackets, '][', '],['), ',') with ordinality as split (part, position)
    ) as stretch
);

comment on function agui_internal.bracket_height is
    'How many of these brackets, [ and ], are open at once at most; below 0 closing brackets count too.';

create or replace function agui_internal.json_equal(a text, b text)
returns boolean
language sql
immutable
parallel safe
return a is not distinct from b or agui_internal.json_to_jsonb(a) is not distinct from agui_internal.json_to_jsonb(b);

comment on function agui_internal.json_equal is
    'Whether two JSON texts are equal. White space, the order of keys and the spelling of strings '
    'and numbers do not matter, except that numbers beyond the range of a double are equal only if '
    'they are spelled alike.';

create or replace function agui_internal.json_to_jsonb(document text)
returns jsonb
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return agui_internal.json_guard_numbers(agui_internal.json_guard(document))::jsonb;
end
$function$;

comment on function agui_internal.json_to_jsonb is
    'Any JSON text as jsonb, guarded (agui_internal.json_guard, agui_internal.json_guard_numbers). '
    'It never fails, and agui_internal.json_from_jsonb restores the text.';

-- jsonb stores numbers as numeric: 1e131072 is too large for it, and 1e100000 would become a text
-- of 100,001 digits. Numbers beyond the range of a double become strings that guarded text never
-- contains otherwise: those that begin with a backslash and a #.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_guard_numbers(document text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
begin
    -- The characters before a number distinguish it from the hexadecimal digits of an id, which
    -- often look like one.
    if document operator(pg_catalog.!~) '(^|[:,[\s])-?[0-9.]+[eE][-+]?[0-9]{3}|[0-9]{250}' then
        return document;
    end if;

    return (
        select pg_catalog.string_agg(
            case
                when part[1] operator(pg_catalog.^@) '"' then part[1]
                else pg_catalog.regexp_replace(
                    part[1],
                    '-?[0-9.]+[eE][-+]?[0-9]{3,}|-?[0-9.]*[0-9]{250}[0-9.]*([eE][-+]?[0-9]+)?',
                    '"\\\\#\&"',
                    'g'
                )
            end,
            ''
            order by position
        )
        from pg_catalog.regexp_matches(document, '"(?:[^"\\]|\\.)*"|[^"]+', 'g') with ordinality as token (part, position)
    );
end
$function$;

comment on function agui_internal.json_guard_numbers is
    'Guarded JSON text with numbers beyond the range of a double, or of hundreds of digits, as strings that agui_internal.json_from_jsonb '
    'turns back, so that jsonb accepts it.';

create or replace function agui_internal.json_from_jsonb(document jsonb)
returns text
language sql
immutable
strict
parallel safe
return agui_internal.json_unguard(agui_internal.json_guarded_from_jsonb(document));

comment on function agui_internal.json_from_jsonb is
    'The JSON text of a jsonb that agui_internal.json_to_jsonb made, patched or not.';

create or replace function agui_internal.json_unguard(document text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(document, '\u') = 0 then document
    else replace(replace(document, '\\u', '\u'), '\u005c', '\\')
end;

comment on function agui_internal.json_unguard is
    'JSON text from text that agui_internal.json_guard rewrote, or that was put together from such text.';

create or replace function agui_internal.json_guarded_from_jsonb(document jsonb)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    guarded constant text := document;
begin
    return case when strpos(guarded, '"\\#') > 0 then regexp_replace(guarded, '"\\\\#([^"]*)"', '\1', 'g') else guarded end;
end
$function$;

comment on function agui_internal.json_guarded_from_jsonb is
    'The guarded JSON text of a jsonb that agui_internal.json_to_jsonb made, patched or not.';

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_guarded(document json)
returns json
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    plain   pg_catalog.text;
    guarded pg_catalog.text;
begin
    if pg_catalog.pg_column_size(document) operator(pg_catalog.>) 1000000 then
        -- Of a large document a copy counts.
        if (
            select given.bytes operator(pg_catalog.!~~) '%\\\\\\\\%'::pg_catalog.bytea and given.bytes operator(pg_catalog.!~~) '%\\\\u%'::pg_catalog.bytea
            from (select agui_internal.json_bytes(document) as bytes offset 0) as given
        ) then
            return document;
        end if;
    end if;
    plain := document;
    guarded := agui_internal.json_guard(plain);
    -- A cast from text to json validates it, which takes as long as reading it.
    return case when guarded operator(pg_catalog.=) plain then document else guarded::pg_catalog.json end;
end
$function$;

comment on function agui_internal.json_guarded is 'JSON as agui_internal.json_guard rewrites it.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_bytes(document json)
returns bytea
language sql
stable
parallel safe
return case
    when pg_client_encoding() = getdatabaseencoding() then json_send(document)
    else convert_to(document::text, getdatabaseencoding())
end;

comment on function agui_internal.json_bytes is
    'The text of a JSON value as bytes, to search in. A cast to text makes a second copy, which counts where values are large.';

-- json_each returns members byte for byte, but fails if a string contains \u0000 or a lone surrogate.
-- So it gets the text with escapes that it does not interpret and that can be reverted exactly
-- (agui_internal.json_guard would unify different spellings of a string):
--
--     \uXXXX  ->  \\uXXXX
--     \\      ->  \\x
--
-- In JSON a backslash always begins an escape, so pairs of them are found from the left. \x is not
-- an escape of JSON, so it can represent such a pair.
create or replace function agui_internal.json_members(document json)
returns table (name text, value json)
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    opaque constant json := replace(replace(replace(document::text, '\\', '\x'), '\u', '\\u'), '\x', '\\x');
begin
    return query
    select member.name, replace(replace(member.value::text, '\\u', '\u'), '\\x', '\\')::json
    from (
        select named.name, named.value, named.place,
            row_number() over (partition by named.name order by named.place desc) as nth_last
        from (
            select agui_internal.json_text(replace(replace(to_json(each.key)::text, '\\u', '\u'), '\\x', '\\')) as name, each.value, each.place
            from json_each(opaque) with ordinality as each (key, value, place)
        ) as named
    ) as member
    where member.nth_last = 1
    order by member.place;
end
$$;

comment on function agui_internal.json_members is
    'The members of a JSON object in order, with values byte for byte, whatever strings they hold. Of a name that stands several times the last one counts. '
    'Null stands for a name that text cannot hold: one with \u0000 or half a surrogate pair.';

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

comment on function agui_internal.json_text is
    'The text of a JSON string. Null for a value that is not a string, and for one with \u0000 or '
    'half a surrogate pair, which text cannot contain.';

-- The JSON functions of PostgreSQL refuse two things that JSON allows in a string: the escape \u0000
-- and half of a surrogate pair (a token stream that was cut in the middle of an emoji). In guarded
-- text these escapes are plain characters: the parser sees an escaped backslash and then uXXXX. To
-- keep this unambiguous, an escaped backslash is written in the same way:
--
--     \u0000                             ->  \\u0000
--     \ud83d (without its other half)    ->  \\ud83d
--     \\ or \u005C                       ->  \\u005c
--
-- So in a string decoded from guarded text, a backslash only ever begins such a group of six
-- characters, in lower case. Two strings are equal if and only if their guarded forms are. jsonb
-- can hold every guarded string, and agui_internal.json_unguard converts anything built from guarded
-- text back to JSON. Halves that meet when strings are joined then form a whole character.
create or replace function agui_internal.json_guard(document text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(document, '\') = 0 then document
    when document like '%\\\\%' or document like '%\\u%' then agui_internal.json_guard_escapes(document)
    else document
end;

comment on function agui_internal.json_guard is
    'Rewrites JSON text so that the JSON functions of PostgreSQL and jsonb accept every string in it: '
    '\u0000, lone surrogates and backslashes become plain text. agui_internal.json_unguard reverts it.';

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

comment on function agui_internal.json_guard_escapes is
    'The part of agui_internal.json_guard for text with an escaped backslash or a numeric escape.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_octets(document json)
returns int
language sql
stable
parallel safe
return case
    -- Arguments are usually not compressed. A value read from a table may be.
    when pg_column_compression(document) is not null then octet_length(document::text)
    when pg_column_size(document) > 1000 then pg_column_size(document) - 4
    else octet_length(document::text)
end;

comment on function agui_internal.json_octets is
    'The bytes of a JSON value, without a copy of its text.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_string_member(document json, name text)
returns text
language sql
immutable
parallel safe
return case when json_typeof(document -> name) = 'string' then (document -> name)::text end;

comment on function agui_internal.json_string_member is
    'A member of a JSON object (guarded) that is a string, as JSON; null for any other value.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_string_text(token text)
returns text
language sql
immutable
parallel safe
return case
    when not token ^@ '"' then null
    when strpos(token, '\') = 0 then substr(token, 2, length(token) - 2)
    else agui_internal.json_string_text_escapes(token)
end;

comment on function agui_internal.json_string_text is
    'The text of a JSON string of guarded JSON text; still guarded if it contains \u0000 or a lone '
    'surrogate, which text cannot contain. Null for a value that is not a string.';

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_string_text_escapes(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    decoded constant pg_catalog.text := token::pg_catalog.json operator(pg_catalog.#>>) '{}';
begin
    if pg_catalog.strpos(pg_catalog.replace(decoded, '\u005c', ''), '\') operator(pg_catalog.>) 0 then
        return decoded;
    end if;
    return pg_catalog.replace(decoded, '\u005c', '\');
end
$function$;

comment on function agui_internal.json_string_text_escapes is 'The part of agui_internal.json_string_text for a string that has a backslash.';

-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_string_token(token text)
returns text
language sql
immutable
parallel safe
return case
    when strpos(token, '\') = 0 then token
    else agui_internal.json_string_token_escapes(token)
end;

comment on function agui_internal.json_string_token is
    'A JSON string of guarded JSON text in its one usual spelling, quotes included: equal strings give equal texts.';

-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_string_token_escapes(token text)
returns text
language plpgsql
immutable
strict
parallel safe
as $function$
begin
    return pg_catalog.to_json(token::pg_catalog.json operator(pg_catalog.#>>) '{}')::pg_catalog.text;
end
$function$;

comment on function agui_internal.json_string_token_escapes is 'The part of agui_internal.json_string_token for a string that has a backslash.';

-- Never raises an error: a value that is not a point in time gives null. (A cast would raise an
-- error, and catching it takes a subtransaction.)
create or replace function agui_internal.json_timestamp(value json)
returns timestamptz
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    milliseconds numeric;
    parts text[];
    date_of date;
begin
    case json_typeof(value)
        when 'number' then
            if length(value::text) > 30 or value::text ~ '[eE]' then
                return null;
            end if;
            milliseconds := value::text::numeric;
            -- The clock of a process, or after the year 9999.
            if milliseconds < 1000000000 or milliseconds >= 253402300800000 then
                return null;
            end if;
            if milliseconds < 100000000000 then  -- seconds, as some frameworks write them
                milliseconds := milliseconds * 1000;
            end if;
            -- In two parts, so that a double represents each exactly to the microsecond.
            return timestamptz '1970-01-01 00:00:00+00'
                + div(milliseconds, 1000)::double precision * interval '1 second'
                + mod(milliseconds, 1000)::double precision * interval '1 millisecond';
        when 'string' then
            parts := regexp_match(
                value::text,
                -- not \d, which matches all digits of Unicode on some servers
                '^"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(\.[0-9]{1,9})?)?'
                '(?:[Zz]|([+-])([01][0-9]|2[0-3]):?([0-5][0-9]))?"$'
            );
            if parts is null or parts[1] = '0000' or parts[2]::int not between 1 and 12 then
                return null;
            end if;
            date_of := make_date(parts[1]::int, parts[2]::int, 1) + (parts[3]::int - 1);
            if extract(month from date_of) <> parts[2]::int then
                return null;
            end if;
            return (date_of + make_time(parts[4]::int, parts[5]::int, coalesce(parts[6], '0')::int)) at time zone 'UTC'
                + coalesce(parts[7], '0')::double precision * interval '1 second'
                - (coalesce(parts[8], '+') || '1')::int
                    * make_interval(hours => coalesce(parts[9], '0')::int, mins => coalesce(parts[10], '0')::int);
        else
            return null;
    end case;
end
$$;

comment on function agui_internal.json_timestamp is
    'The point in time that a JSON value states: milliseconds since 1970, as in the timestamp of '
    'AG-UI events; seconds since 1970, if the number is from 1e9 to 1e11; or a string in ISO 8601 (UTC if it '
    'has no offset). Null for any other value. events.TimeOf does the same in Go.';

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

comment on function agui_internal.readable is
    'The text of a guarded JSON string (agui_internal.json_string_text) with U+FFFD in place of what text '
    'cannot contain.';

create or replace function agui_internal.json_member_set(document text, name text, value text)
returns text
language plpgsql
immutable
parallel safe
as $function$
begin
    return (
        select pg_catalog.concat(
            '{',
            pg_catalog.string_agg(pg_catalog.concat(pg_catalog.to_json(member.key), ':', member.value), ',' order by member.position),
            '}'
        )
        from (
            -- The last value of a key counts, at the place of its first one.
            select each.key, (pg_catalog.array_agg(each.value order by each.position desc))[1] as value, pg_catalog.min(each.position) as position
            from (
                select each.key, each.value::pg_catalog.text, each.position
                from pg_catalog.json_each(document::pg_catalog.json) with ordinality as each (key, value, position)
                union all
                select json_member_set.name, json_member_set.value, 9223372036854775807
            ) as each (key, value, position)
            group by each.key
        ) as member
        where member.value is not null
    );
end
$function$;

comment on function agui_internal.json_member_set is
    'A JSON object (as guarded text) with a member set to a value, in its place or else at the end; without the member when the value is null.';
