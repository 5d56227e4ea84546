create or replace function agui.replay(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    shape     text default 'snapshot',
    scope     text default ''
)
returns setof json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    return query
    select event.payload
    from json_array_elements(
        agui_internal.replay_events(thread_id, leaf, agui_internal.seq_at(leaf.thread_key, at_seq, at_time), shape)
    ) with ordinality as event (payload, position)
    order by event.position;
end
$function$;

comment on function agui.replay(text, text, bigint, timestamptz, text, text) is
    'Returns a short stream of events, one in each row, that gives any AG-UI client the messages, '
    'state and interrupts of the lineage of a run (null: the head) or, for a point in the past, '
    'after event at_seq or at at_time, whichever is earlier. Shape snapshot: RUN_STARTED, '
    'MESSAGES_SNAPSHOT, STATE_SNAPSHOT, what is open (a message, a tool call, a step), and the '
    'event that ended the run, if it has ended. An earlier run precedes it in two cases: if '
    'interrupts still wait that this run does not end with itself; and, with messages and state in '
    'it, if the run is in progress and continues from another run or has subagents. Shape stream: '
    'the compacted stream of the lineage (agui.compact_events). '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI012 another '
    'thread has the same key, UI013 unknown shape, UI022 a run is in quarantine, UI023 the fold '
    'exceeds a limit.';

revoke execute on function agui.replay(text, text, bigint, timestamptz, text, text) from public;
