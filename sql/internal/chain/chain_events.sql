create or replace function agui_internal.chain_events(events json)
returns json
language sql
immutable
parallel safe
return case
    when agui_internal.is_dense(events) then events
    else (
        select ('[' || string_agg(element.payload::text, ',' order by element.position) || ']')::json
        from json_array_elements(events) with ordinality as element (payload, position)
    )
end;

comment on function agui_internal.chain_events(json) is
    'An array of events as the log of a chained thread has it: the events byte for byte, with commas and nothing else between them. So it stays '
    'the same when agui.repack joins batches.';

revoke execute on function agui_internal.chain_events(json) from public;
