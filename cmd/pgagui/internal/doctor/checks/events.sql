-- the runs that changed last have no malformed events
select
    'warning' as severity,
    format('no client shows event %s (%s) of run %s of thread %s: %s', malformed.seq, malformed.type, run.run_id, run.thread_id, malformed.problem) as problem,
    'let the agent send events of AG-UI: from Python event.model_dump_json(by_alias=True, exclude_none=True), or EventEncoder; agui.malformed_events lists them' as advice
from (
    select latest.run_id, thread.thread_id, thread.scope, latest.changed_in
    from agui.run as latest
    join agui.thread as thread on thread.thread_key = latest.thread_key
    where latest.changed_in is not null and agui_internal.node_of(latest.thread_key) is not distinct from agui_internal.this_node()
    order by latest.changed_in desc
    limit 20
) as run
cross join lateral agui.malformed_events(run.thread_id, run.run_id, 1, run.scope) as malformed
order by run.changed_in desc
