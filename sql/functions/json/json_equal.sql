create or replace function agui.json_equal(a text, b text)
returns boolean
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if a is not distinct from b then
        return true;
    end if;
    return agui.json_guard(a)::jsonb is not distinct from agui.json_guard(b)::jsonb;
exception
    -- A number that jsonb cannot hold, such as 1e400000: such documents are equal only when they are spelled alike.
    when numeric_value_out_of_range or program_limit_exceeded then
        return false;
end
$$;

comment on function agui.json_equal(text, text) is
    'Whether two JSON texts say the same: white space, the order of keys and the spelling of numbers and strings do not count.';

revoke execute on function agui.json_equal(text, text) from public;
