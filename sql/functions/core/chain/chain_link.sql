-- It is inlined, as is all that it calls: convert_to is stable, and so are these functions. Each
-- argument is used once.
create or replace function agui_internal.chain_link(
    previous  bytea,
    first_seq bigint,
    n         int,
    times     bytea,
    run_id    text,
    beginning bytea,
    events    json
)
returns bytea
language sql
stable
parallel safe
return sha256(
    previous || int8send(first_seq) || int4send(n) || times || agui_internal.chain_text(run_id) || beginning || convert_to(events::text, 'UTF8')
);

comment on function agui_internal.chain_link(bytea, bigint, int, bytea, text, bytea, json) is
    'The hash of a link, which is the events of one append. It covers the hash of the previous '
    'link in the thread (agui_internal.chain_origin for the first), the seq of its first event, '
    'the number of events, their times (agui_internal.chain_times), the id of their run, '
    'agui_internal.chain_beginning if the run begins with it (otherwise one zero byte), and the '
    'JSON array in the form of agui_internal.chain_events. Numbers are big-endian.';

revoke execute on function agui_internal.chain_link(bytea, bigint, int, bytea, text, bytea, json) from public;
