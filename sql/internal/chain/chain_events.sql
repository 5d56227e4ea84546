create or replace function agui_internal.chain_events(events json)
returns json
language sql
stable
parallel safe
-- Tabs and line ends are between values alone; spaces may be in strings, too. Writers that put none between events, as most do, are spared the rest.
return case
    when strpos(events::text, '} ') = 0 and strpos(events::text, ' {') = 0 and left(events::text, 1) = '[' and right(events::text, 1) = ']'
        and left(events::text, 2) <> '[ ' and right(events::text, 2) <> ' ]'
        and strpos(events::text, e'\n') = 0 and strpos(events::text, e'\t') = 0 and strpos(events::text, e'\r') = 0
        then events
    else (
        select ('[' || string_agg(element.payload::text, ',' order by element.position) || ']')::json
        from json_array_elements(events) with ordinality as element (payload, position)
    )
end;

comment on function agui_internal.chain_events(json) is
    'An array of events as the log of a chained thread has it: the events byte for byte, with commas and nothing else between them. So it stays '
    'the same when agui.repack joins batches.';

revoke execute on function agui_internal.chain_events(json) from public;
