create or replace function agui.import_events(
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
-- As in agui.append.
set enable_seqscan = off
set jit = off
as $$
begin
    perform agui_internal.own_thread_key(scope, thread_id);
    return agui_internal.append_events(thread_id, run_id, events, after_seq, input, parent_run_id, parallel, strict, scope, true);
end
$$;

comment on function agui.import_events(text, text, json, bigint, json, text, boolean, boolean, text) is
    'Appends events of a run that took place in the past. Arguments and errors are those of '
    'agui.append. recorded_at of an event is its timestamp member (milliseconds since 1970, or '
    'seconds); an event without one, or with one before 2015, gets the time of the event before it, or of the '
    'import. Times never decrease along the log of a thread and are never in '
    'the future. Thread lists, retention and durations are therefore correct for imported '
    'conversations. A run that has not ended counts as alive from now on. Requires '
    'agui_maintainer. '
    'Errors: UI002 unknown run, UI003 unknown parent, UI004 the parent is in progress, UI005 the '
    'run has ended, UI006 another run is in progress or claimed, UI007 the repeated call differs '
    'from the log, UI008 invalid arguments, UI009 the run id is in use or is not that of '
    'RUN_STARTED, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the '
    'thread was erased, UI016 the run was cut off, UI017 the log was rewound, UI021 RUN_STARTED '
    'names another thread (strict).';

revoke execute on function agui.import_events(text, text, json, bigint, json, text, boolean, boolean, text) from public;
