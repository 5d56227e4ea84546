create or replace function agui_internal.quoted_id(id text)
returns text
language sql
immutable
parallel safe
return case
    when id ~ '^[[{]' then 'which is not a string'
    else agui_internal.json_unguard(to_json(left(id, 200))::text)
end;

comment on function agui_internal.quoted_id(text) is
    'Quotes an id from an event (guarded text) for an error text. Error texts appear in the log of '
    'the server, so a value that cannot be an id is left out.';

revoke execute on function agui_internal.quoted_id(text) from public;
