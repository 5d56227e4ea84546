-- What agui.compact does at once: one run, or several short ones of a lineage.
create type agui_internal.compaction_step as (
    thread_key uuid,
    run_nos    int[],
    place      timestamptz,
    step_no    bigint
);

comment on type agui_internal.compaction_step is
    'Runs to compact, of which notes are made: each is the parent of the next; {0} stands for all '
    'runs of the thread. place: where it was in the queue. step_no: its number in '
    'agui_internal.compaction_progress, if its transaction has several steps.';
