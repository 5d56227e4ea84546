create type agui.run_place as (
    run_no    int,
    parent_no int
);

comment on type agui.run_place is 'Where a new run stands in its thread''s tree; parent_no is null for a root.';
