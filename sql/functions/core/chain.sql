-- The chain of hashes, which makes a change of the log evident, also one by the owner of the
-- tables. docs/security.md says how to use it.
--
-- From the next run after agui.enable_chain on, each batch of a thread has a hash: SHA-256 over the
-- previous hash of the thread, its first seq, the times and bytes of its events, and the id of its
-- run (chain_link). The first batch of a run also covers parent and input, the first of a thread
-- scope and thread id.
--
--   … ─► link 7 ─► link 8 ─► link 9    one append is one link
--        └──── one batch ────┘         repack keeps the hash of the last link that it joins, and in
--                                      `links` how many events each had: the others are computed
--
-- - There is one chain a thread, not one a run. The previous hash is in the batch that an append
--   reads anyway. The order across runs is protected too, and a thread has one head hash.
-- - A chained thread stays chained. Otherwise a batch without a hash could be one that was changed.
-- - A chained thread stores no white space between events, because repack would not keep it.
--   is_dense checks the text; a text with white space takes the slow path.
-- - `pgagui verify --chain` computes every link in Go from the raw rows. It shares no code with
--   these functions, which an owner could replace.

create or replace function agui_internal.chain_beginning(thread_key uuid, parent_no int, input_hash bytea)
returns bytea
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return '\x01'::bytea
        || coalesce(
            (
                select '\x01'::bytea || agui_internal.chain_text(parent.run_id)
                from agui.run as parent
                where parent.thread_key = chain_beginning.thread_key and parent.run_no = chain_beginning.parent_no
            ),
            '\x00'::bytea
        )
        || coalesce('\x01'::bytea || input_hash, '\x00'::bytea);
end
$$;

comment on function agui_internal.chain_beginning is
    'What the first link of a run covers in addition: its parent, and sha256 of the input stored '
    'beside its events (null: none).';

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

comment on function agui_internal.chain_events is
    'An array of events in the form that the log of a chained thread stores: the events byte for '
    'byte, with only commas between them. This form does not change when agui.repack joins '
    'batches.';

create or replace function agui_internal.is_dense(events json)
returns boolean
language sql
immutable
parallel safe
-- Tabs and line ends occur only between values. Spaces also occur in strings, so a dense array is
-- sometimes reported as not dense.
return events::text !~ '[\t\n\r]|[}] | [{]|^ | $';

comment on function agui_internal.is_dense is
    'Whether an array of events evidently has only commas between the events, the form that '
    'agui_internal.chain_events produces.';

create or replace function agui_internal.chain_origin(scope text, thread_id text)
returns bytea
language sql
stable
parallel safe
return sha256('pgagui chain 1'::bytea || agui_internal.chain_text(scope) || agui_internal.chain_text(thread_id));

comment on function agui_internal.chain_origin is
    'The value that the first link of a thread covers in place of the hash of a previous link.';

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

comment on function agui_internal.chain_times is
    'The times of the events of a link as its hash covers them: their number (4 bytes), then each '
    'in microseconds since 2000-01-01 UTC (8 bytes), or a single time if all are equal. Numbers '
    'are big-endian.';

create or replace function agui_internal.is_chained(scope text)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from agui_internal.chained_scope as chained where chained.is_all or chained.scope = is_chained.scope
    );
end
$$;

comment on function agui_internal.is_chained is
    'Whether the threads of a scope are to be chained from their next run on.';

create or replace function agui_internal.is_dense_call(events json, plain_count int)
returns boolean
language sql
immutable
parallel safe
-- Each of several plain events begins with its type, and "type" occurs nowhere else. So if there is
-- a last part after as many separators, they separate the events. A single event may contain the
-- separator; its last part ends the array too. These functions are fast: they do not look at each
-- character of a long text.
return starts_with(events::text, '[{')
    and split_part(events::text, '},{"type":"', case when plain_count = 1 then -1 else plain_count end) like '%}]';

comment on function agui_internal.is_dense_call is
    'Whether an array of plain events has only commas between the events, the form that '
    'agui_internal.chain_events produces. plain_count is its agui_internal.plain_event_count. '
    'Faster than agui_internal.is_dense.';

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

comment on function agui_internal.next_link is
    'The hash of the link (agui_internal.chain_link) for events of one time, in the form of '
    'agui_internal.chain_events. beginning is agui_internal.chain_beginning if their run begins '
    'with them.';

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

comment on function agui_internal.chain_link is
    'The hash of a link, which is the events of one append. It covers the hash of the previous '
    'link in the thread (agui_internal.chain_origin for the first), the seq of its first event, '
    'the number of events, their times (agui_internal.chain_times), the id of their run, '
    'agui_internal.chain_beginning if the run begins with it (otherwise one zero byte), and the '
    'JSON array in the form of agui_internal.chain_events. Numbers are big-endian.';

create or replace function agui_internal.chain_text(value text)
returns bytea
language sql
stable
parallel safe
return int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8');

comment on function agui_internal.chain_text is
    'A text as a link of the chain covers it: the number of its bytes in UTF-8 (4 bytes, '
    'big-endian), then the bytes.';

create or replace function agui_internal.page_of_heads(
    of_scope   text,
    after_key  uuid,
    page       int,
    out thread_key uuid,
    out scope  text,
    out thread_id text,
    out seq    bigint,
    out hash   bytea,
    out recorded_at timestamptz
)
returns setof record
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select thread.thread_key, thread.scope, thread.thread_id, latest.first_seq + latest.n - 1, latest.hash, latest.recorded_at
    from agui.thread as thread
    cross join lateral (
        select batch.first_seq, batch.n, batch.hash, batch.recorded_at
        from agui.batch as batch
        where batch.thread_key = thread.thread_key
        order by batch.first_seq desc
        limit 1
    ) as latest
    where thread.thread_key > after_key
        and (of_scope is null or thread.scope = of_scope)
        and latest.hash is not null
    order by thread.thread_key
    limit page
$$;

comment on function agui_internal.page_of_heads is
    'Returns a page of the chained threads of a scope (null: of all scopes) after a key, in the '
    'order of their keys, with the seq and the time of the last event and the hash of the last link.';
