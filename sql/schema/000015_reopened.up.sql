-- Which interrupts of a thread may wait: a run that fails opens again what it was to answer, so the job looks at those of its thread.

create index interrupt_open_of_thread on agui.projected_interrupt (thread_key) where is_open is not false;

comment on column agui.projected_interrupt.is_open is
    'Whether it waits for an answer, or will if the run in progress fails (agui_internal.may_wait), as of the last call of '
    'the job; null: not known yet, in rows of a store that did not have the column.';
comment on index agui.interrupt_open_of_thread is 'What waits in a thread.';
