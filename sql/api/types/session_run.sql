create type agui.session_run as (
    run_id text,
    events json
);

comment on type agui.session_run is 'A run that messages of a session stand for: what agui.append takes.';
