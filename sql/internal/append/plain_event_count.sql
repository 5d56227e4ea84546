create or replace function agui_internal.plain_event_count(events json)
returns int
language sql
immutable
parallel safe
-- No subquery in it, so it is inlined, and a single token, as live streams bring them, takes no query. Nor does what is to be looked at closer
-- in any case, as a rule.
return case
    when agui_internal.is_single_token_event(events) then 1
    when json_typeof(events) = 'array' and strpos(events::text, '"RUN_') = 0 then agui_internal.count_plain_events(events)
end;

comment on function agui_internal.plain_event_count(json) is
    'How many events these are, where it is plain to see that they are sound and no news to the life cycle of their run; null: look closer '
    '(agui_internal.inspect_events).';

revoke execute on function agui_internal.plain_event_count(json) from public;
