alter table agui_internal.webhook_position drop column calls_since;

drop index agui.interrupt_call_due;
drop index agui.interrupt_to_settle;
create index interrupt_to_settle on agui.projected_interrupt (is_open, expires_at) where is_open is not false;
comment on index agui.interrupt_to_settle is
    'The queue of agui_internal.settle_interrupts: interrupts that are not settled yet, and those that expire.';
delete from agui.projected_interrupt where is_call;
alter table agui.projected_interrupt
    drop column arguments,
    drop column is_call;
comment on column agui.projected_interrupt.is_open is
    'Whether it waits for an answer, or will if the run in progress fails (agui_internal.may_wait), as of the last call of '
    'the job; null: not known yet, in rows of a store that did not have the column.';
