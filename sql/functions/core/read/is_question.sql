create or replace function agui_internal.is_question(event json)
returns boolean
language sql
immutable
parallel safe
return event ->> 'type' = any (agui_internal.event_types('ask')) and event ->> 'name' = agui_internal.question_name();

comment on function agui_internal.is_question(json) is
    'Whether an event (guarded) asks.';

revoke execute on function agui_internal.is_question(json) from public;
