-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_member(head text, name text, value text)
returns text
language sql
immutable
parallel safe
return case
    when head <> '{}' and strpos(head, '"' || name || '":') = 0
        then coalesce(left(head, -1) || ',"' || name || '":' || value || '}', head)
    else agui_internal.json_member_set(head, name, value)
end;

comment on function agui_internal.fold_member(text, text, text) is
    'Faster form of agui_internal.json_member_set for a head of agui_internal.fold_events, whose '
    'keys are in their usual spelling, without white space.';

revoke execute on function agui_internal.fold_member(text, text, text) from public;
