create or replace function agui.attach(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    shape     text default 'snapshot',
    scope     text default ''
)
returns agui.attachment
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
    return (agui_internal.attach_at(thread_id, run_id, at_seq, at_time, after_seq, shape, scope, 'head', 1, 2147483647)).answer;
end
$function$;

comment on function agui.attach(text, text, bigint, timestamptz, bigint, text, text) is
    'Returns all that a server needs to show a conversation and to continue it live, as of one '
    'point in time: the history of the lineage of a run (null: the head), and the position to '
    'follow from. agui.poll(array[thread_id], array[seq], array[recorded_at]) then returns what '
    'follows, of all runs of the thread. Messages, calls and steps that are open at the position '
    'stay open in the history, so the next events continue them. Shape snapshot: as agui.replay '
    'returns it, with the CUSTOM events of the run, 100 in 1 MiB at most; it also works for a client that has seen a part of the history. Shape stream: the '
    'compacted stream (agui.compact_events). Shape events: the events themselves, from after_seq '
    'on, those of thinking as the events of reasoning that they mean. With at_seq or at_time the history and the position end there, at the earlier of the two. '
    'A thread that does not exist yet has no run, no events and position 0. running names the '
    'other runs in progress; their events are not in the history. '
    'Errors: UI001 unknown thread, where a run or after_seq is given, UI002 unknown run, UI008 '
    'invalid arguments, UI012 another thread has the same key, UI013 unknown shape, or one that '
    'does not allow after_seq, UI017 the log ends before after_seq, UI022 a run is in quarantine, '
    'UI023 the fold exceeds a limit.';

revoke execute on function agui.attach(text, text, bigint, timestamptz, bigint, text, text) from public;
