-- name: Lineage :many
select
    (run).depth::int as depth,
    (run).run_id::pg_catalog.text as run_id,
    coalesce((run).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (run).status::pg_catalog.text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq,
    (run).started_at::pg_catalog.timestamptz as started_at,
    coalesce((run).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (run).run_no::int as run_no,
    coalesce((run).error_code, '')::pg_catalog.text as error_code,
    coalesce((run).error_message, '')::pg_catalog.text as error_message,
    coalesce((run).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((run).cut_off_reason, '')::pg_catalog.text as cut_off_reason
from agui.lineage(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text) as run;

-- name: Runs :many
select
    (run).depth::int as depth,
    (run).run_id::pg_catalog.text as run_id,
    coalesce((run).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (run).status::pg_catalog.text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq,
    (run).started_at::pg_catalog.timestamptz as started_at,
    coalesce((run).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (run).run_no::int as run_no,
    coalesce((run).error_code, '')::pg_catalog.text as error_code,
    coalesce((run).error_message, '')::pg_catalog.text as error_message,
    coalesce((run).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((run).cut_off_reason, '')::pg_catalog.text as cut_off_reason
from agui.runs(@thread_id::pg_catalog.text, @scope::pg_catalog.text) as run;

-- name: Branches :many
select
    (branch).run_id::pg_catalog.text as run_id,
    (branch).runs::int as runs,
    coalesce((branch).forked_from, '')::pg_catalog.text as forked_from,
    (branch).status::pg_catalog.text as status,
    coalesce((branch).last_seq, 0)::bigint as last_seq,
    (branch).is_head::boolean as is_head
from agui.branches(@thread_id::pg_catalog.text, @scope::pg_catalog.text) as branch;

-- name: Head :one
select agui.head(@thread_id::pg_catalog.text, @scope::pg_catalog.text)::pg_catalog.text as run_id;

-- name: MergeBase :one
select coalesce(agui.merge_base(@thread_id::pg_catalog.text, @run_a::pg_catalog.text, @run_b::pg_catalog.text, @scope::pg_catalog.text), '')::pg_catalog.text as run_id;

-- name: MessageOrigin :many
-- One row at most.
select
    (run).depth::int as depth,
    (run).run_id::pg_catalog.text as run_id,
    coalesce((run).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (run).status::pg_catalog.text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq,
    (run).started_at::pg_catalog.timestamptz as started_at,
    coalesce((run).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (run).run_no::int as run_no,
    coalesce((run).error_code, '')::pg_catalog.text as error_code,
    coalesce((run).error_message, '')::pg_catalog.text as error_message,
    coalesce((run).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((run).cut_off_reason, '')::pg_catalog.text as cut_off_reason
from agui.message_origin(@thread_id::pg_catalog.text, @message_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text) as run;

-- name: RunSpans :many
-- The runs of a lineage that have events after after_seq, root first; or the run alone. None: the thread is
-- unknown, and the session reads unknown threads as empty.
select
    (run).run_id::pg_catalog.text as run_id,
    (run).run_no::int as run_no,
    (run).status::pg_catalog.text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq
from agui_internal.find_run(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text) as leaf
cross join lateral agui_internal.ancestors(leaf, case when @lineage::boolean then @after_seq::bigint else leaf.first_seq end) as run
order by (run).run_no;

-- name: Answered :one
select
    coalesce((found).asking_run_id, '')::pg_catalog.text as asking_run_id,
    coalesce((found).answered_by, '')::pg_catalog.text as answered_by,
    coalesce((found).answered_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as answered_at
from agui.answered(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(asked_by)::pg_catalog.text, sqlc.narg(interrupt_ids)::pg_catalog.text[], sqlc.narg(question)::pg_catalog.json, @scope::pg_catalog.text) as found;
