create or replace function agui_internal.quoted_id(id text)
returns text
language sql
immutable
parallel safe
return case
    when id ~ '^[[{]' then 'which is no string'
    else agui_internal.json_unguard(to_json(left(id, 200))::text)
end;

comment on function agui_internal.quoted_id(text) is
    'An id that an event names (guarded text), for an error: all that errors say is in the server''s log, so nothing that can be no id.';

revoke execute on function agui_internal.quoted_id(text) from public;
