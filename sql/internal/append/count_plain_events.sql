create or replace function agui_internal.count_plain_events(events json)
returns int
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select scan.n
        from agui_internal.scan_events(events) as scan
        where scan.all_typed
            and not scan.any_long
            and scan.lifecycle_n = 0
            and octet_length(events::text) <= agui_internal.max_call_bytes()
    );
end
$$;

comment on function agui_internal.count_plain_events(json) is
    'Implements agui_internal.plain_event_count for an array that is not a single token.';

revoke execute on function agui_internal.count_plain_events(json) from public;
