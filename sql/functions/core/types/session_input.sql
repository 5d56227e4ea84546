create type agui_internal.session_input as (
    subject   text,
    thread_id text,
    run_id    text,
    state     json,
    versions  json
);

comment on type agui_internal.session_input is
    'A session passed to agui.save_sessions: its name in error texts, its thread, its run (null: '
    'none), and the objects with its documents and with the versions that its writer has read '
    '(null: not given).';
