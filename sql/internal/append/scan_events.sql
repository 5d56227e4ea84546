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
    -- Most calls bring events that need no look into each: where all begin with their type, and "type" stands nowhere else and is
    -- spelled with escapes nowhere, that is the type they have; and depth takes bytes.
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
    'What a JSON array of events shows without a look into each: how many they are; whether the type of each is plain to see; whether one is '
    'so long (or there is none) that its depth must be looked at; and, where all types are, how many are of the life cycle.';

revoke execute on function agui_internal.scan_events(json) from public;
