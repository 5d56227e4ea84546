-- name: Messages :many
select
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).role, '')::pg_catalog.text as role,
    (item).message::pg_catalog.json as message
from agui.messages(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text) as item;

-- name: State :one
select agui.state(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text)::pg_catalog.json as state;

-- name: Interrupts :many
select
    coalesce((item).interrupt_id, '')::pg_catalog.text as interrupt_id,
    coalesce((item).reason, '')::pg_catalog.text as reason,
    coalesce((item).message, '')::pg_catalog.text as message,
    coalesce((item).tool_call_id, '')::pg_catalog.text as tool_call_id,
    -- The zero time of Go: none.
    coalesce((item).expires_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as expires_at,
    (item).expired::boolean as expired,
    (item).interrupt::pg_catalog.json as interrupt
from agui.interrupts(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text) as item;

-- name: PendingToolCalls :one
select agui.pending_tool_calls(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text)::pg_catalog.text[] as call_ids;

-- name: MalformedEvents :many
select
    (item).seq::bigint as seq,
    (item).type::pg_catalog.text as type,
    (item).problem::pg_catalog.text as problem
from agui.malformed_events(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @max_rows::int, @scope::pg_catalog.text) as item;

-- name: Restore :one
select agui.restore(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text)::pg_catalog.json as restored;

-- name: Batches :many
-- A page of the batches of a run that contain its events after a seq.
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).has_more::boolean as has_more
    from (
        select coalesce(pg_catalog.max(holder.first_seq), 1) as first_seq
        from agui.batch as holder
        where holder.thread_key operator(pg_catalog.=) agui_internal.visible_thread_key(@scope::pg_catalog.text, @thread_id::pg_catalog.text)
            and holder.first_seq operator(pg_catalog.<=) (least(@after_seq::bigint, 9223372036854775806) operator(pg_catalog.+) 1)
    ) as beginning
    cross join lateral agui_internal.page_of_batches(
        agui_internal.visible_thread_key(@scope::pg_catalog.text, @thread_id::pg_catalog.text), beginning.first_seq, 9223372036854775807, array[@run_no::int], @page::int, @page_bytes::bigint
    ) as span
)
select
    (batch).first_seq::bigint as first_seq,
    (batch).n::int as n,
    (batch).recorded_at::pg_catalog.timestamptz as recorded_at,
    (batch).events::pg_catalog.json as events,
    coalesce((batch).earlier_us, '{}')::int[] as earlier_us,
    (select page.has_more from page)::boolean as has_more
from agui_internal.batches_behind(agui_internal.visible_thread_key(@scope::pg_catalog.text, @thread_id::pg_catalog.text), @after_seq::bigint) as batch
where (batch).run_no operator(pg_catalog.=) @run_no::int
    and (batch).first_seq operator(pg_catalog.+) (batch).n operator(pg_catalog.-) 1 operator(pg_catalog.>) @after_seq::bigint
    and (batch).first_seq operator(pg_catalog.<=) (select page.last_seq from page)
order by (batch).first_seq;

-- name: Verify :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui.verify(@thread_id::pg_catalog.text, @scope::pg_catalog.text) as item;

-- name: Replay :many
select item::pg_catalog.json as event
from agui.replay(
    @thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @shape::pg_catalog.text, @scope::pg_catalog.text
) as item;

-- name: Attachments :many
select
    (item).n::int as n,
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).type, '')::pg_catalog.text as type,
    coalesce((item).mime_type, '')::pg_catalog.text as mime_type,
    coalesce((item).filename, '')::pg_catalog.text as filename,
    (item).bytes::bigint as bytes
from agui.attachments(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text) as item;

-- name: AttachmentData :one
select
    coalesce(item.message_id, '')::pg_catalog.text as message_id,
    coalesce(item.type, '')::pg_catalog.text as type,
    coalesce(item.mime_type, '')::pg_catalog.text as mime_type,
    coalesce(item.filename, '')::pg_catalog.text as filename,
    item.data::pg_catalog.bytea as data
from agui.attachment_data(@thread_id::pg_catalog.text, @n::int, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text) as item;

-- name: LastEvents :many
-- A last row with seq 0: page_bytes ended the page.
select
    coalesce((item).seq, 0)::bigint as seq,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).type, '')::pg_catalog.text as type,
    coalesce((item).recorded_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as recorded_at,
    (item).payload::pg_catalog.json as payload
from agui.last_events(
    @thread_id::pg_catalog.text,
    sqlc.narg(run_id)::pg_catalog.text,
    sqlc.narg(at_seq)::bigint,
    sqlc.narg(types)::pg_catalog.text[],
    @max_rows::int,
    @lineage::boolean,
    @scope::pg_catalog.text,
    sqlc.narg(page_bytes)::int
) as item;
