create or replace function agui_internal.scan_events(
    events json,
    out n           int,
    out all_typed   boolean,
    out any_long    boolean,
    out lifecycle_n int,
    out is_dense    boolean
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    total bigint;
begin
    -- Most calls need no parsing of each event. If every event begins with its type, and "type"
    -- occurs nowhere else and without escapes, then that is the type. And nesting takes bytes.
    -- The subquery takes the size of each element once: a large one is copied less often.
    select
        count(*),
        count(*) filter (where event.has_type) = count(*)
            and octet_length(events::text) - octet_length(replace(events::text, '"type"', '')) = octet_length('"type"') * count(*)
            and events::text not like '%\\u%',
        coalesce(max(event.bytes) > 2000, true),
        count(*) filter (where event.is_lifecycle),
        coalesce(sum(event.bytes), 0)
    into n, all_typed, any_long, lifecycle_n, total
    from (
        select
            octet_length(value::text) as bytes,
            starts_with(value::text, '{"type":"') as has_type,
            starts_with(value::text, '{"type":"RUN_') as is_lifecycle
        from json_array_elements(events) as element (value)
        offset 0
    ) as event;
    is_dense := octet_length(events::text) = total + n + 1;
end
$$;

comment on function agui_internal.scan_events(json) is
    'Inspects a JSON array of events without parsing each event: how many there are; whether all '
    'types are evident; whether an event is so long (or there is none) that its depth must be '
    'checked; if all types are evident, how many events belong to the life cycle; and whether the '
    'array is dense, with nothing but commas between the events.';

revoke execute on function agui_internal.scan_events(json) from public;
