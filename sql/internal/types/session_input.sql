create type agui_internal.session_input as (
    subject   text,
    thread_id text,
    run_id    text,
    state     json,
    versions  json
);

comment on type agui_internal.session_input is
    'A session as it was given to agui.save_sessions: how errors call it, its thread, its run (null: none), and the objects with its documents and with '
    'the versions that its writer had read (null: not given).';
