create type agui_internal.run_position as (
    run_no    int,
    parent_no int,
    open_from int
);

comment on type agui_internal.run_position is
    'The place of a new run in the tree of its thread; parent_no is null for a root. No run with a '
    'smaller number than open_from is in progress.';
