create type agui_internal.run_position as (
    run_no    int,
    parent_no int
);

comment on type agui_internal.run_position is 'Where a new run stands in its thread''s tree; parent_no is null for a root.';
