create or replace function agui_internal.chain_events(events json)
returns json
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if agui_internal.is_dense(events) then
        return events;
    end if;
    return (
        select ('[' || string_agg(element.payload::text, ',' order by element.position) || ']')::json
        from json_array_elements(events) with ordinality as element (payload, position)
    );
end
$$;

comment on function agui_internal.chain_events(json) is
    'An array of events in the form that the log of a chained thread stores: the events byte for '
    'byte, with only commas between them. This form does not change when agui.repack joins '
    'batches.';

revoke execute on function agui_internal.chain_events(json) from public;
