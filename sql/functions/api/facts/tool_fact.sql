create or replace view agui.tool_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    activity.agent,
    call.call_id,
    call.tool,
    case
        when result.error is not null then 'failed'
        when result.result_at is not null then 'completed'
        when run.status in ('cancelled', 'failed', 'cut_off') or not call.is_complete then 'cut_off'
        else 'called'
    end as status,
    result.error,
    call.started_at,
    result.result_at - call.started_at as duration,
    call.argument_bytes,
    result.result_bytes,
    answering.run_id as result_run_id,
    call.thread_key,
    call.run_no
from agui.projected_call as call
join agui.run as run on run.thread_key = call.thread_key and run.run_no = call.run_no
join agui.thread as thread on thread.thread_key = call.thread_key
left join agui.thread_activity as activity on activity.thread_key = call.thread_key
left join lateral (
    select other.run_no, other.result_at, other.result_bytes, other.error
    from agui.projected_call as other
    where call.result_at is null
        and other.thread_key = call.thread_key
        and other.call_id = call.call_id
        and other.tool is null
        and other.run_no > call.run_no
    order by other.run_no
    limit 1
) as later on true
cross join lateral (
    select
        case when call.result_at is not null then call.run_no else later.run_no end as run_no,
        coalesce(call.result_at, later.result_at) as result_at,
        case when call.result_at is not null then call.result_bytes else later.result_bytes end as result_bytes,
        case when call.result_at is not null then call.error else later.error end as error
) as result
left join agui.run as answering on answering.thread_key = call.thread_key and answering.run_no = result.run_no and result.result_at is not null
where call.tool is not null;

comment on view agui.tool_fact is
    'The tool calls of runs that have ended, as agui.project() found them: a row for each call. A call that a later run '
    'of the lineage starts again is the same.';
comment on column agui.tool_fact.scope is 'Scope of the thread.';
comment on column agui.tool_fact.thread_id is 'The thread.';
comment on column agui.tool_fact.run_id is 'The run that made the call.';
comment on column agui.tool_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.tool_fact.call_id is 'toolCallId.';
comment on column agui.tool_fact.tool is 'Name of the function.';
comment on column agui.tool_fact.status is
    'completed: there is a result; failed: the result is an error (see error); called: it waits for a '
    'result; cut_off: the run ended before the call or its result did.';
comment on column agui.tool_fact.error is
    'What failed, its first 1000 characters; null: nothing. A result is an error if it has a member '
    'error, or if its content begins with the word Error or is an object that begins with a member '
    'error or has "isError": true, or is the JSON string of such a text.';
comment on column agui.tool_fact.started_at is 'When the call was recorded.';
comment on column agui.tool_fact.duration is
    'Until its result was recorded. A result that a client sends with the next run counts from the end of the run that made the call. Null: no result.';
comment on column agui.tool_fact.argument_bytes is 'Size of the arguments in bytes, as JSON writes them.';
comment on column agui.tool_fact.result_bytes is 'Size of the content of the result in bytes, as JSON writes it; null: no result.';
comment on column agui.tool_fact.result_run_id is 'The run that brought the result: the same, or the first later one; null: no result.';
comment on column agui.tool_fact.thread_key is 'Key of the thread.';
comment on column agui.tool_fact.run_no is 'Number of the run in its thread.';
