-- Which interrupts may still wait for an answer, so that a page of them is read in its order and reads no others.

-- Without a default, so that the table is not rewritten: agui.project() sets it in the rows that there are.
alter table agui.projected_interrupt add column is_open boolean;

create index interrupt_open on agui.projected_interrupt (asked_at, thread_key, run_no) where is_open is not false;
-- As run_by_time.
create index interrupt_open_in_scope on agui.projected_interrupt (left(thread_key::text, 18) collate "C", asked_at, thread_key, run_no)
    where is_open is not false;
create index interrupt_to_settle on agui.projected_interrupt (is_open, expires_at) where is_open is not false;

comment on column agui.projected_interrupt.is_open is
    'Whether it may wait for an answer (agui_internal.still_waits), as of the last call of the job; false: it never '
    'does again; null: not known yet, in rows of a store that did not have the column.';
comment on index agui.interrupt_open is 'A page of agui.waiting.';
comment on index agui.interrupt_open_in_scope is 'The same for a scope.';
comment on index agui.interrupt_to_settle is
    'The queue of agui_internal.settle_interrupts: interrupts that are not settled yet, and those that expire.';

-- The planner's estimates apply no policy (see the first migration).
alter index agui.interrupt_open_in_scope alter column 1 set statistics 0;
