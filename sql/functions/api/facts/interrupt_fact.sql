create or replace view agui.interrupt_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    activity.agent,
    interrupt.interrupt_id,
    interrupt.reason,
    interrupt.message,
    interrupt.tool_call_id,
    interrupt.asked_at,
    interrupt.expires_at,
    state.status,
    answer.run_id as answered_by,
    answer.started_at as answered_at,
    interrupt.thread_key,
    interrupt.run_no,
    case when interrupt.is_call then 'call' else 'interrupt' end as kind,
    agui_internal.tool_of_call(interrupt) as tool,
    interrupt.arguments
from agui.projected_interrupt as interrupt
join agui.run as run on run.thread_key = interrupt.thread_key and run.run_no = interrupt.run_no
join agui.thread as thread on thread.thread_key = interrupt.thread_key
left join agui.thread_activity as activity on activity.thread_key = interrupt.thread_key
cross join lateral agui_internal.interrupt_state(interrupt) as state
left join agui.run as answer on answer.thread_key = interrupt.thread_key and answer.run_no = state.answer_no
-- What a page answers at once is no question.
where interrupt.is_call is not true
    or state.status in ('waiting', 'answering')
    or answer.started_at > interrupt.asked_at + agui_internal.setting_value('call_delay') * interval '1 second';

comment on view agui.interrupt_fact is
    'The interrupts with which runs ended, and the tool calls without a result that wait or have waited for longer than '
    'the setting call_delay, as agui.project() found them: a row for each.';
comment on column agui.interrupt_fact.scope is 'Scope of the thread.';
comment on column agui.interrupt_fact.thread_id is 'The thread.';
comment on column agui.interrupt_fact.run_id is 'The run that asks.';
comment on column agui.interrupt_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.interrupt_fact.interrupt_id is 'id of the interrupt; null: it has none.';
comment on column agui.interrupt_fact.reason is 'Why the agent asks, as a word; null: not said.';
comment on column agui.interrupt_fact.message is 'The question, its first 1000 characters; null: none.';
comment on column agui.interrupt_fact.tool_call_id is 'The tool call that waits, or that the interrupt is about; null: none.';
comment on column agui.interrupt_fact.asked_at is 'When the run ended.';
comment on column agui.interrupt_fact.expires_at is 'Until when an answer counts; null: no limit.';
comment on column agui.interrupt_fact.status is
    'waiting: it is open after the head; answering: the head continues the run that asks, and is in progress; '
    'answered: a run that continues it has finished, or the conversation went on in another branch; expired: '
    'expires_at has passed without an answer. A run that failed answers no interrupt. A call is answered by a run that '
    'brings its result, and by no other.';
comment on column agui.interrupt_fact.answered_by is 'The first run that continues it and has finished, or the one in progress; null: none.';
comment on column agui.interrupt_fact.answered_at is 'When that run began; null: none did.';
comment on column agui.interrupt_fact.thread_key is 'Key of the thread.';
comment on column agui.interrupt_fact.run_no is 'Number of the run in its thread.';
comment on column agui.interrupt_fact.kind is
    'interrupt, or call: the run finished without a result of a tool call. If the input of the run lists tools, it is one of them.';
comment on column agui.interrupt_fact.tool is 'Name of the function of the tool call; null: no call.';
comment on column agui.interrupt_fact.arguments is 'The arguments of a call that waits, their first 1000 characters; null: it is an interrupt.';
