create type agui_internal.changed_place as (
    changed_in xid8,
    thread_key uuid,
    run_no     int
);

comment on type agui_internal.changed_place is
    'A place in the order of changes: the transaction that changed a run last, and the run; or the one '
    'that erased a thread, thread_uid of the thread, and 0.';
