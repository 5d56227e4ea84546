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
language sql
stable
parallel safe
return agui_internal.chain_link(
    previous, first_seq, n, '\x00000001'::bytea || timestamptz_send(recorded_at), run_id, beginning, events
);

comment on function agui_internal.next_link(bytea, bigint, int, timestamptz, text, json, bytea) is
    'The hash of the link (agui_internal.chain_link) for events of one time, in the form of '
    'agui_internal.chain_events. beginning is agui_internal.chain_beginning if their run begins '
    'with them.';

revoke execute on function agui_internal.next_link(bytea, bigint, int, timestamptz, text, json, bytea) from public;
