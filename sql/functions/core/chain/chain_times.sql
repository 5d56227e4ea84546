create or replace function agui_internal.chain_times(times timestamptz[])
returns bytea
language sql
immutable
parallel safe
return case
    when times[1] = all (times) then '\x00000001'::bytea || timestamptz_send(times[1])
    else (
        select int4send(cardinality(times)) || string_agg(timestamptz_send(event.at), '' order by event.position)
        from unnest(times) with ordinality as event (at, position)
    )
end;

comment on function agui_internal.chain_times(timestamptz[]) is
    'The times of the events of a link as its hash covers them: their number (4 bytes), then each '
    'in microseconds since 2000-01-01 UTC (8 bytes), or a single time if all are equal. Numbers '
    'are big-endian.';

revoke execute on function agui_internal.chain_times(timestamptz[]) from public;
