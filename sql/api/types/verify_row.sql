create type agui.verify_row as (
    run_id   text,
    problem  text,
    severity text
);

comment on type agui.verify_row is
    'What agui.verify found, and in which run; run_id is null where no run can be named. severity: ''damage'' is what the database should not hold; ''note'' is '
    'what the agent or its writer did against the protocol, kept as it was appended.';
