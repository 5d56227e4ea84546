-- A MESSAGES_SNAPSHOT leaves the messages that a client has in place, appends new ones, and keeps
-- activities and reasoning if it names none. So if one snapshot does not produce the list, a first
-- one clears what is there.
create or replace function agui_internal.compact_snapshots(
    head text,
    tail text,
    state text,
    changes_messages boolean,
    before agui_internal.fold,
    after agui_internal.fold
)
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
declare
    claim    constant text := case
        when 'activity' = any (before.roles) then ',"metadata":{"@ag-ui/client":{"authoritativeActivityTypes":null}}'
        else ''
    end;
    needs_claim constant boolean := 'activity' = any (after.roles) is not true;
    list     constant text := '{"type":"MESSAGES_SNAPSHOT","messages":[' || array_to_string(after.bodies, ',') || ']';
    cleared  constant text := '{"type":"MESSAGES_SNAPSHOT","messages":['
        || case when 'reasoning' = any (before.roles) then '{"id":"cleared","role":"reasoning","content":""}' else '' end
        || ']' || claim || '}';
begin
    if not changes_messages then
        return array[concat_ws(',', nullif(head, ''), state, tail)];
    end if;
    return array[
        concat_ws(',', nullif(head, ''), list || case when needs_claim then claim else '' end || '}', state, tail),
        concat_ws(',', nullif(head, ''), cleared, list || '}', state, tail)
    ];
end
$function$;

comment on function agui_internal.compact_snapshots(text, text, text, boolean, agui_internal.fold, agui_internal.fold) is
    'The forms of a run in shape snapshot, the best first: the remaining events before its end, '
    'the messages, its state, its end.';

revoke execute on function agui_internal.compact_snapshots(text, text, text, boolean, agui_internal.fold, agui_internal.fold) from public;
