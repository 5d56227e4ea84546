create or replace function agui_internal.read_event_span(event json)
returns agui_internal.event_span
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    plain constant json := agui_internal.json_guarded(event);
    number constant text := coalesce((plain -> 'event_count')::text, (plain -> 'eventCount')::text);
    span agui_internal.event_span;
begin
    if number ~ '^[1-9][0-9]{0,14}$' then
        span.event_count := number::bigint;
        span.created_at := agui_internal.json_timestamp(coalesce(plain -> 'created_at', plain -> 'createdAt', plain -> 'timestamp'));
        span.completed_at := agui_internal.json_timestamp(coalesce(plain -> 'completed_at', plain -> 'completedAt'));
        return span;
    end if;
    return null;
end
$$;

comment on function agui_internal.read_event_span(json) is
    'What an event that was joined before it was appended states about its parts: event_count (or '
    'eventCount), their number, and created_at (createdAt, timestamp) and completed_at '
    '(completedAt), the times of the first and the last one. Null for an event without such a '
    'count.';

revoke execute on function agui_internal.read_event_span(json) from public;
