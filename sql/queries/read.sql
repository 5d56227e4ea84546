-- name: Messages :many
select
    coalesce((item).message_id, '')::text as message_id,
    coalesce((item).role, '')::text as role,
    (item).message::json as message
from agui.messages(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text) as item;

-- name: State :one
select agui.state(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text)::json as state;

-- name: Interrupts :many
select
    coalesce((item).interrupt_id, '')::text as interrupt_id,
    coalesce((item).reason, '')::text as reason,
    coalesce((item).message, '')::text as message,
    coalesce((item).tool_call_id, '')::text as tool_call_id,
    -- The zero time of Go: none.
    coalesce((item).expires_at, '0001-01-01 00:00:00+00')::timestamptz as expires_at,
    (item).expired::boolean as expired,
    (item).interrupt::json as interrupt
from agui.interrupts(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text) as item;

-- name: PendingToolCalls :one
select agui.pending_tool_calls(@thread_id::text, sqlc.narg(run_id)::text, @scope::text)::text[] as call_ids;

-- name: MalformedEvents :many
select
    (item).seq::bigint as seq,
    (item).type::text as type,
    (item).problem::text as problem
from agui.malformed_events(@thread_id::text, sqlc.narg(run_id)::text, @max_rows::int, @scope::text) as item;

-- name: Restore :one
select agui.restore(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text)::json as restored;

-- name: Batches :many
-- A page of the batches of a run that contain its events after a seq.
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).has_more::boolean as has_more
    from (
        select coalesce(max(holder.first_seq), 1) as first_seq
        from agui.batch as holder
        where holder.thread_key = agui_internal.visible_thread_key(@scope::text, @thread_id::text)
            and holder.first_seq <= (least(@after_seq::bigint, 9223372036854775806) + 1)
    ) as beginning
    cross join lateral agui_internal.page_of_batches(
        agui_internal.visible_thread_key(@scope::text, @thread_id::text), beginning.first_seq, 9223372036854775807, array[@run_no::int], @page::int, @page_bytes::bigint
    ) as span
)
select
    (batch).first_seq::bigint as first_seq,
    (batch).n::int as n,
    (batch).recorded_at::timestamptz as recorded_at,
    (batch).events::json as events,
    coalesce((batch).earlier_us, '{}')::int[] as earlier_us,
    (select page.has_more from page)::boolean as has_more
from agui_internal.batches_behind(agui_internal.visible_thread_key(@scope::text, @thread_id::text), @after_seq::bigint) as batch
where (batch).run_no = @run_no::int
    and (batch).first_seq + (batch).n - 1 > @after_seq::bigint
    and (batch).first_seq <= (select page.last_seq from page)
order by (batch).first_seq;

-- name: Verify :many
select coalesce((item).run_id, '')::text as run_id, (item).problem::text as problem, (item).severity::text as severity
from agui.verify(@thread_id::text, @scope::text) as item;

-- name: Replay :many
select item::json as event
from agui.replay(
    @thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @shape::text, @scope::text
) as item;

-- name: Attachments :many
select
    (item).n::int as n,
    coalesce((item).message_id, '')::text as message_id,
    coalesce((item).type, '')::text as type,
    coalesce((item).mime_type, '')::text as mime_type,
    coalesce((item).filename, '')::text as filename,
    (item).bytes::bigint as bytes
from agui.attachments(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text) as item;

-- name: AttachmentData :one
select
    coalesce(item.message_id, '')::text as message_id,
    coalesce(item.type, '')::text as type,
    coalesce(item.mime_type, '')::text as mime_type,
    coalesce(item.filename, '')::text as filename,
    item.data::bytea as data
from agui.attachment_data(@thread_id::text, @n::int, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text) as item;

-- name: LastEvents :many
-- A last row with seq 0: page_bytes ended the page.
select
    coalesce((item).seq, 0)::bigint as seq,
    coalesce((item).run_id, '')::text as run_id,
    coalesce((item).type, '')::text as type,
    coalesce((item).recorded_at, '0001-01-01 00:00:00+00')::timestamptz as recorded_at,
    (item).payload::json as payload
from agui.last_events(
    @thread_id::text,
    sqlc.narg(run_id)::text,
    sqlc.narg(at_seq)::bigint,
    sqlc.narg(types)::text[],
    @max_rows::int,
    @lineage::boolean,
    @scope::text,
    sqlc.narg(page_bytes)::int
) as item;
