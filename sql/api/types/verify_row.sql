create type agui.verify_row as (
    run_id  text,
    problem text
);

comment on type agui.verify_row is 'Something that agui.verify found wrong, and in which run; run_id is null where no run can be named.';
