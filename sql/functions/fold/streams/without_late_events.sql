create or replace function agui_internal.without_late_events(events json)
returns json
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
    select ('[' || coalesce(string_agg(element.payload::text, ',' order by element.position), '') || ']')::json
    from (
        select
            listed.payload,
            listed.position,
            (
                coalesce(max(listed.position) filter (where listed.type = 'RUN_ERROR') over before, 0)
                > coalesce(max(listed.position) filter (where listed.type = 'RUN_STARTED') over before, 0)
                and listed.type <> 'RUN_STARTED'
                and listed.type = any (agui_internal.event_types('changes something', 'fail run'))
            ) is true as is_late
        from (
            select element.payload, element.position, agui_internal.event_type(element.payload) as type
            from json_array_elements(events) with ordinality as element (payload, position)
        ) as listed
        window before as (order by listed.position rows between unbounded preceding and 1 preceding)
    ) as element
    where not element.is_late
$function$;

comment on function agui_internal.without_late_events(json) is
    'A JSON array of events without those behind RUN_ERROR that mean something elsewhere. '
    'RUN_STARTED opens a run again.';

revoke execute on function agui_internal.without_late_events(json) from public;
