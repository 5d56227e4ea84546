create or replace function agui_internal.json_equal(a text, b text)
returns boolean
language sql
immutable
parallel safe
return a is not distinct from b or agui_internal.json_to_jsonb(a) is not distinct from agui_internal.json_to_jsonb(b);

comment on function agui_internal.json_equal(text, text) is
    'Whether two JSON texts are equal. White space, the order of keys and the spelling of strings '
    'and numbers do not matter, except that numbers beyond the range of a double are equal only if '
    'they are spelled alike.';

revoke execute on function agui_internal.json_equal(text, text) from public;
