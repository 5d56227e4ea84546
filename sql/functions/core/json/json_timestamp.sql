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

comment on function agui_internal.json_timestamp(json) is
    'The point in time that a JSON value states: milliseconds since 1970, as in the timestamp of '
    'AG-UI events; seconds since 1970, if the number is from 1e9 to 1e11; or a string in ISO 8601 (UTC if it '
    'has no offset). Null for any other value. events.TimeOf does the same in Go.';

revoke execute on function agui_internal.json_timestamp(json) from public;
