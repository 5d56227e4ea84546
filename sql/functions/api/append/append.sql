create or replace function agui.append(
    thread_id text,
    run_id    text,
    events    json,
    after_seq bigint default null,
    input     json default null,
    parent_run_id text default null,
    parallel  boolean default false,
    strict    boolean default false,
    scope     text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- A session keeps its plans until a vacuum or an analyze. Made while the store is young, they would
-- read whole tables, in a long transaction for every run of it.
set enable_seqscan = off
-- The costs of a table that has no other plan would turn it on.
set jit = off
as $$
declare
    key       uuid := agui_internal.own_thread_key(scope, thread_id);
    new_n     int := case
        when input is null and parent_run_id is null and pg_column_size(events) < 1000000 then agui_internal.plain_event_count(events)
    end;
    stamp     timestamptz;
    last_seq  bigint;
begin
    -- Fast path for the most frequent call: the next tokens of a run in progress. One check of the
    -- text, one statement. Each expression is set up for each call, so there are few.
    if new_n is not null and agui_internal.lock_thread(key) then
        stamp := clock_timestamp();
        -- List all columns in the order of the table. Otherwise the plan needs an extra node that
        -- reorders them.
        insert into agui.batch (thread_key, first_seq, recorded_at, n, run_no, events, earlier_us, text_bytes, hash, links)
        select
            key, place.first_seq, greatest(place.recorded_at, stamp), new_n, place.run_no, append.events, null::int[],
            agui_internal.text_bytes_to_store(append.events),
            case
                when place.hash is not null then agui_internal.next_link(
                    place.hash, place.first_seq, new_n, greatest(place.recorded_at, stamp), append.run_id, append.events
                )
            end,
            null::int[]
        from agui_internal.next_place(key, append.scope, append.thread_id, append.run_id, append.after_seq) as place
        where place.hash is null or agui_internal.is_dense_call(append.events, new_n)
        on conflict do nothing
        returning batch.first_seq + batch.n - 1 into last_seq;
        if found then
            return last_seq;
        end if;
    end if;

    return agui_internal.append_events(thread_id, run_id, events, after_seq, input, parent_run_id, parallel, strict, scope, false);
end
$$;

comment on function agui.append(text, text, json, bigint, json, text, boolean, boolean, text) is
    'Appends a JSON array of AG-UI events to a run and returns the seq of the last one. '
    'RUN_STARTED begins the run; RUN_FINISHED or RUN_ERROR ends it. after_seq makes a retry safe: '
    'it is the seq of the last event of the run that the writer knows to be stored (0: none). '
    'Events that the log already has after it are compared and not stored twice, so a call whose '
    'answer was lost can be repeated, in batches of any size. With null there is no such check. '
    'input is the RunAgentInput of the run, for a RUN_STARTED that does not carry it; it is kept '
    'byte for byte and must come with the call that begins the run. parent_run_id names the '
    'parent; an empty text means none; null means the one that RUN_STARTED names, or else the head. parallel '
    'allows the run to begin while others are in progress. Events after the end of a run are '
    'accepted in the call that ends it, and later with after_seq as long as no run continues from '
    'it. The same holds for a second RUN_STARTED. With after_seq => 0 a run may begin with any '
    'event. strict refuses all of these, and a RUN_STARTED with the id of another thread. '
    'Errors: UI002 unknown run, UI003 unknown parent, UI004 the parent is in progress, UI005 the '
    'run has ended, UI006 another run is in progress or claimed, UI007 the repeated call differs '
    'from the log, UI008 invalid events, or an input that is not an object or comes too late, '
    'UI009 the run id is in use or is not that of RUN_STARTED, UI011 a limit is exceeded, UI012 '
    'another thread has the same key, UI014 the thread was erased, UI016 the run was cut off, '
    'UI017 the log was rewound, UI021 RUN_STARTED names another thread (strict).';

revoke execute on function agui.append(text, text, json, bigint, json, text, boolean, boolean, text) from public;
