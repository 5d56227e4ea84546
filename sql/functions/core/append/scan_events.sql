create or replace function agui_internal.scan_events(
    events json,
    out n         int,
    out all_plain boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Most calls need no parsing of each event. Nesting takes bytes, so a short event is not deep.
    select
        count(*),
        coalesce(bool_and(
            octet_length(event.bytes) <= 2000
            and event.bytes like '{%'::bytea
            and agui_internal.has_evident_type(event.bytes)
            and event.bytes not like all (array['{"type":"RUN\\_%'::bytea, '{"type": "RUN\\_%'::bytea])
        ), false)
    into n, all_plain
    from (select agui_internal.json_bytes(value) as bytes from json_array_elements(events) offset 0) as event;
end
$$;

comment on function agui_internal.scan_events(json) is
    'Inspects a JSON array of events without parsing each event: how many there are; and whether they are plain: short, of a type that '
    'is evident and does not belong to the life cycle.';

revoke execute on function agui_internal.scan_events(json) from public;
