-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.message_id_of(kind text, guarded text)
returns text
language sql
immutable
parallel safe
return case
    when kind = 'message' and left(guarded, 1) = '{' then agui_internal.json_string_text((guarded::json -> 'id')::text)
end;

comment on function agui_internal.message_id_of(text, text) is
    'The id of a part of an input (guarded JSON), as folds decode it; null if it is no message, or has '
    'no id.';

revoke execute on function agui_internal.message_id_of(text, text) from public;
