-- Not strict, and without a query in it, so that it is inlined where it is called.
create or replace function agui_internal.fold_calls_in(body text, head text)
returns json
language sql
immutable
parallel safe
return case
    when strpos(coalesce(body, head), 'toolCalls') > 0 or strpos(coalesce(body, head), '\u') > 0
        then coalesce(agui_internal.json_guard(body), head)::json -> 'toolCalls'
end;

comment on function agui_internal.fold_calls_in(text, text) is
    'The tool calls of a message of agui_internal.fold_events, given as its body or else as its head.';

revoke execute on function agui_internal.fold_calls_in(text, text) from public;
