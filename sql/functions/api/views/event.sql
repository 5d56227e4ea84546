-- The casts change nothing. Tools that read the definition, such as sqlc, take the column types
-- from them.
create or replace view agui.event with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    (batch.first_seq + element.position - 1)::bigint as seq,
    agui_internal.event_type(element.payload)::text as type,
    agui_internal.event_time(batch.recorded_at, element.earlier_us)::timestamptz as recorded_at,
    element.payload::json as payload,
    batch.thread_key
from agui.batch
join agui.thread
    on thread.thread_key = batch.thread_key
cross join lateral (
    -- One look-up for each batch. Under row-level security the planner expects at most one run in a
    -- thread, and would join all runs of the thread with all of its batches.
    select started.run_id
    from agui.run as started
    where started.thread_key = batch.thread_key and started.run_no = batch.run_no
    offset 0
) as run
cross join lateral rows from (json_array_elements(batch.events), unnest(batch.earlier_us)) with ordinality
    as element (payload, earlier_us, position);

comment on view agui.event is
    'The log, one row for each event. To read a thread from a seq on, use agui.events: the view '
    'has to open every batch of the thread.';
comment on column agui.event.seq is
    'Position in the log of the thread: 1, 2, 3, … in commit order.';
comment on column agui.event.type is 'Type of the event, decoded.';
comment on column agui.event.recorded_at is 'Time when the event was appended.';
comment on column agui.event.payload is 'The event, byte for byte.';
comment on column agui.event.thread_key is
    'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
