-- It is inlined.
create or replace function agui_internal.part_of_message(thread_key uuid, body text)
returns int
language sql
stable
parallel safe
-- For less, to look costs more than it saves.
return case when octet_length(body) >= 100 then agui_internal.known_part(thread_key, 'message', body) end;

comment on function agui_internal.part_of_message(uuid, text) is
    'The part of the inputs of a thread (agui.input_part) that a message version points to, because it '
    'has the same text; null: the version has a body.';

revoke execute on function agui_internal.part_of_message(uuid, text) from public;
