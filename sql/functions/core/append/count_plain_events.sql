create or replace function agui_internal.count_plain_events(events json)
returns int
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.is_single_token_event(events) then
        return 1;
    end if;
    -- Most events that need further checks need no look at each event.
    if (json_typeof(events) = 'array' and strpos(events::text, '"RUN_') = 0) is not true then
        return null;
    end if;
    return (select scan.n from agui_internal.scan_events(events) as scan where scan.all_plain);
end
$$;

comment on function agui_internal.count_plain_events(json) is
    'Implements agui_internal.plain_event_count for all but the most frequent form of a single token.';

revoke execute on function agui_internal.count_plain_events(json) from public;
