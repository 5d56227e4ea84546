create or replace view agui.run_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    parent.run_id as parent_run_id,
    activity.agent,
    run.status,
    projected.error_code,
    projected.error_message,
    run.stop_reason,
    run.cut_off_reason,
    run.started_at,
    run.ended_at,
    run.ended_at - run.started_at as duration,
    projected.first_token_at - run.started_at as first_token_after,
    projected.events,
    projected.bytes,
    run.thread_key,
    run.run_no
from agui.run as run
join agui.thread as thread on thread.thread_key = run.thread_key
left join agui.thread_activity as activity on activity.thread_key = run.thread_key
left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
left join agui.projected_run as projected on projected.thread_key = run.thread_key and projected.run_no = run.run_no;

comment on view agui.run_fact is
    'All runs, with what agui.project() found in their logs. That is null while a run is in progress, '
    'and until the next call of the job.';
comment on column agui.run_fact.scope is 'Scope of the thread.';
comment on column agui.run_fact.thread_id is 'The thread.';
comment on column agui.run_fact.run_id is 'The run.';
comment on column agui.run_fact.parent_run_id is 'The run that it continues from; null: a root.';
comment on column agui.run_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.run_fact.status is 'running, finished, interrupted, cancelled, failed or cut_off, as in agui.run.';
comment on column agui.run_fact.error_code is 'code of RUN_ERROR; null: none.';
comment on column agui.run_fact.error_message is 'message of RUN_ERROR, its first 1000 characters; null: none.';
comment on column agui.run_fact.stop_reason is 'Reason given with a stop request; null: none.';
comment on column agui.run_fact.cut_off_reason is 'Why it was ended on behalf of its writer; null: it was not.';
comment on column agui.run_fact.started_at is 'When its first event was recorded.';
comment on column agui.run_fact.ended_at is 'When its last event was recorded; null while it is running.';
comment on column agui.run_fact.duration is 'From its first event to its last; null while it is running.';
comment on column agui.run_fact.first_token_after is
    'How long after its beginning the first piece of a text message was recorded; null: there is none.';
comment on column agui.run_fact.events is 'Number of its events.';
comment on column agui.run_fact.bytes is 'Size of the text of its events in bytes.';
comment on column agui.run_fact.thread_key is 'Key of the thread.';
comment on column agui.run_fact.run_no is 'Number of the run in its thread.';
