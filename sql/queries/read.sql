-- name: Messages :many
select
    coalesce((item).message_id, '')::text as message_id,
    coalesce((item).role, '')::text as role,
    (item).message::json as message
from agui.messages(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text) as item;

-- name: State :one
select agui.state(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text)::json as state;

-- name: Interrupts :one
select agui.interrupts(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text)::json as interrupts;

-- name: Restore :one
select agui.restore(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @scope::text)::json as restored;

-- name: Batches :many
-- The batches of a run that hold its events behind a seq, a page at a time.
select
    (batch).first_seq::bigint as first_seq,
    (batch).n::int as n,
    (batch).recorded_at::timestamptz as recorded_at,
    (batch).events::json as events,
    coalesce((batch).earlier_us, '{}')::int[] as earlier_us
from agui_internal.batches_behind(agui.thread_key(@scope::text, @thread_id::text), @after_seq::bigint) as batch
where (batch).run_no = @run_no::int
    and (batch).first_seq + (batch).n - 1 > @after_seq::bigint
order by (batch).first_seq
limit @page::int;

-- name: Verify :many
select coalesce((item).run_id, '')::text as run_id, (item).problem::text as problem, (item).severity::text as severity
from agui.verify(@thread_id::text, @scope::text) as item;

-- name: Replay :many
select item::json as event
from agui.replay(
    @thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::timestamptz, @shape::text, @scope::text
) as item;
