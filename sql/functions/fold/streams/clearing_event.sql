create or replace function agui_internal.clearing_event(message_ids text[], roles text[])
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
return case
    when exists (
        select from unnest(message_ids) as place (id) where place.id is not null group by place.id having count(*) > 1
    ) then
        '{"type":"MESSAGES_SNAPSHOT","messages":[' || concat_ws(
            ',',
            case when 'reasoning' = any (roles) then '{"id":"cleared","role":"reasoning","content":""}' end,
            case when 'activity' = any (roles) then '{"id":"cleared too","role":"activity","activityType":"cleared","content":{}}' end
        ) || '],"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}}'
end;

comment on function agui_internal.clearing_event(text[], text[]) is
    'The list that clears what a client has before a list of messages with these ids and roles; null: '
    'none is needed. A client replaces all of its messages with an id in a list by the one in the list, '
    'so ids that repeat (frameworks give the result of a tool the id of the call) need one. It names a '
    'message of each role that an older client keeps when the list has none.';

revoke execute on function agui_internal.clearing_event(text[], text[]) from public;
