create type agui_internal.run_position as (
    run_no    int,
    parent_no int,
    open_from int
);

comment on type agui_internal.run_position is 'Where a new run stands in its thread''s tree; parent_no is null for a root. No run with a smaller number than open_from is in progress.';
