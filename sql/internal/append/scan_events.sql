create or replace function agui_internal.scan_events(
    events json,
    out n           int,
    out all_typed   boolean,
    out any_long    boolean,
    out lifecycle_n int
)
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Most calls need no parsing of each event. If every event begins with its type, and "type"
    -- occurs nowhere else and without escapes, then that is the type. And nesting takes bytes.
    select
        count(*),
        count(*) filter (where starts_with(value::text, '{"type":"')) = count(*)
            and octet_length(events::text) - octet_length(replace(events::text, '"type"', '')) = octet_length('"type"') * count(*)
            and events::text not like '%\\u%',
        coalesce(max(octet_length(value::text)) > 2000, true),
        count(*) filter (where starts_with(value::text, '{"type":"RUN_'))
    into n, all_typed, any_long, lifecycle_n
    from json_array_elements(events) as event (value);
end
$$;

comment on function agui_internal.scan_events(json) is
    'Inspects a JSON array of events without parsing each event: how many there are; whether all '
    'types are evident; whether an event is so long (or there is none) that its depth must be '
    'checked; and, if all types are evident, how many events belong to the life cycle.';

revoke execute on function agui_internal.scan_events(json) from public;
