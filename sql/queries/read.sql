-- name: Messages :many
select
    coalesce((item).message_id, '')::text as message_id,
    coalesce((item).role, '')::text as role,
    (item).message::json as message
from agui.messages(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, @scope::text) as item;

-- name: State :one
select agui.state(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, @scope::text)::json as state;

-- name: Interrupts :one
select agui.interrupts(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, @scope::text)::json as interrupts;

-- name: Restore :one
select agui.restore(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, @scope::text)::json as restored;

-- name: Batches :many
-- The batches of a run that hold its events from a seq on, a page at a time.
select batch.first_seq, batch.n, batch.recorded_at, batch.events, coalesce(batch.earlier_us, '{}')::int[] as earlier_us
from agui.batch
where batch.thread_key = agui.thread_key(@scope::text, @thread_id::text)
    and batch.run_no = @run_no::int
    and batch.first_seq >= coalesce((
        select max(holder.first_seq)
        from agui.batch as holder
        where holder.thread_key = agui.thread_key(@scope::text, @thread_id::text)
            and holder.first_seq <= @from_seq::bigint
    ), 1)
    and batch.first_seq + batch.n > @from_seq::bigint
order by batch.first_seq
limit @page::int;

-- name: Verify :many
select coalesce((item).run_id, '')::text as run_id, (item).problem::text as problem, (item).severity::text as severity
from agui.verify(@thread_id::text, @scope::text) as item;

-- name: Replay :many
select item::json as event
from agui.replay(@thread_id::text, sqlc.narg(run_id)::text, @shape::text, @scope::text) as item;
