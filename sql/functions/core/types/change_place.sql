create type agui_internal.change_place as (
    epoch      text,
    is_in_first_reading boolean,
    changed_in xid8,
    thread_key uuid,
    run_no     int
);

comment on type agui_internal.change_place is
    'A position of agui.changes. epoch: its history of transactions (agui_internal.epoch). '
    'is_in_first_reading: the run is the last that was read of all runs, behind which those come that '
    'changed from changed_in on. Else all runs that were changed before changed_in were read, and of those '
    'that it changed the ones up to the run. thread_key and run_no are those of an erased thread as in '
    'agui_internal.changed_place.';
