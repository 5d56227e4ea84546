create or replace function agui_internal.next_link(
    previous    bytea,
    first_seq   bigint,
    n           int,
    recorded_at timestamptz,
    run_id      text,
    events      json,
    beginning   bytea default '\x00'
)
returns bytea
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL, because an inlined function would be set up by each append, without a chain too.
    return agui_internal.chain_link(
        previous, first_seq, n, '\x00000001'::bytea || timestamptz_send(recorded_at), run_id, beginning, events
    );
end
$$;

comment on function agui_internal.next_link(bytea, bigint, int, timestamptz, text, json, bytea) is
    'The hash of the link (agui_internal.chain_link) for events of one time, in the form of '
    'agui_internal.chain_events. beginning is agui_internal.chain_beginning if their run begins '
    'with them.';

revoke execute on function agui_internal.next_link(bytea, bigint, int, timestamptz, text, json, bytea) from public;
