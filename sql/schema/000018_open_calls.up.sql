-- Some agents ask by a tool call without a result. What waits for it is listed with the interrupts.

-- Without defaults, so that the table is not rewritten.
alter table agui.projected_interrupt
    add column is_call boolean,
    add column arguments text;

create index interrupt_call_due on agui.projected_interrupt (asked_at) where is_call and is_open is null;

-- Calls have a queue of their own.
drop index agui.interrupt_to_settle;
create index interrupt_to_settle on agui.projected_interrupt (is_open, expires_at) where is_open is not false and is_call is not true;
comment on index agui.interrupt_to_settle is
    'The queue of agui_internal.settle_interrupts: interrupts that are not settled yet, and those that expire.';

comment on column agui.projected_interrupt.is_call is
    'Whether it is a tool call (tool_call_id) to which the run gave no result; null: it is an interrupt.';
comment on column agui.projected_interrupt.arguments is
    'Of a call that waits: its arguments, their first 1000 characters; null: it does not, as far as the job knows.';
comment on column agui.projected_interrupt.is_open is
    'Whether it waits for an answer, or will if the run in progress fails (agui_internal.may_wait), as of the last call of '
    'the job; null: not known yet, in rows of a store that did not have the column, and in calls that the job is to look at '
    '(agui_internal.settle_calls).';
comment on index agui.interrupt_call_due is 'The queue of agui_internal.settle_calls.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui.projected_interrupt alter column arguments set statistics 0;

-- The table has a row for each webhook. A webhook of before hears nothing of the calls of before.
alter table agui_internal.webhook_position add column calls_since timestamptz not null default clock_timestamp();

comment on column agui_internal.webhook_position.calls_since is 'Calls without a result that were made before are not sent.';
