create type agui.session_run as (
    run_id text,
    events json
);

comment on type agui.session_run is
    'A run converted from messages of a legacy session, as arguments for agui.append.';
