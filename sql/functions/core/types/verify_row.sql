create type agui.verify_row as (
    run_id   text,
    problem  text,
    severity text
);

comment on type agui.verify_row is
    'A finding of agui.verify and the run it concerns (run_id is null if none can be named). '
    'severity: ''damage'' is what the database must not contain; ''note'' is what the agent or its '
    'writer did against the protocol, stored as it was appended.';
