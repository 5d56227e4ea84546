create or replace function agui_internal.scan_events(
    events json,
    out n         int,
    out all_plain boolean,
    out largest   int
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Most calls need no parsing of each event. Nesting takes bytes, so a short event is not deep.
    -- A large one is not copied.
    select
        count(*),
        coalesce(bool_and(
            event.bytes is not null
            and event.bytes like '{%'::bytea
            and agui_internal.has_evident_type(event.bytes)
            and event.bytes not like all (array['{"type":"RUN\\_%'::bytea, '{"type": "RUN\\_%'::bytea, agui_internal.question_pattern()])
        ), false),
        max(event.bytes_held)
    into n, all_plain, largest
    from (
        select
            pg_column_size(value) as bytes_held,
            case when pg_column_size(value) <= 2000 then agui_internal.json_bytes(value) end as bytes
        from json_array_elements(events)
        offset 0
    ) as event;
end
$$;

comment on function agui_internal.scan_events(json) is
    'Inspects a JSON array of events without parsing each event: how many there are; and whether they are plain: short, of a type that '
    'is evident and does not belong to the life cycle; and the bytes that the largest takes.';

revoke execute on function agui_internal.scan_events(json) from public;
