-- name: Lineage :many
select
    (run).depth::int as depth,
    (run).run_id::text as run_id,
    coalesce((run).parent_run_id, '')::text as parent_run_id,
    (run).status::text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq,
    (run).started_at::timestamptz as started_at,
    coalesce((run).ended_at, '0001-01-01 00:00:00+00')::timestamptz as ended_at,
    (run).run_no::int as run_no,
    coalesce((run).error_code, '')::text as error_code,
    coalesce((run).error_message, '')::text as error_message,
    coalesce((run).stop_reason, '')::text as stop_reason,
    coalesce((run).cut_off_reason, '')::text as cut_off_reason
from agui.lineage(@thread_id::text, sqlc.narg(run_id)::text, @scope::text) as run;

-- name: Runs :many
select
    (run).depth::int as depth,
    (run).run_id::text as run_id,
    coalesce((run).parent_run_id, '')::text as parent_run_id,
    (run).status::text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq,
    (run).started_at::timestamptz as started_at,
    coalesce((run).ended_at, '0001-01-01 00:00:00+00')::timestamptz as ended_at,
    (run).run_no::int as run_no,
    coalesce((run).error_code, '')::text as error_code,
    coalesce((run).error_message, '')::text as error_message,
    coalesce((run).stop_reason, '')::text as stop_reason,
    coalesce((run).cut_off_reason, '')::text as cut_off_reason
from agui.runs(@thread_id::text, @scope::text) as run;

-- name: Branches :many
select
    (branch).run_id::text as run_id,
    (branch).runs::int as runs,
    coalesce((branch).forked_from, '')::text as forked_from,
    (branch).status::text as status,
    coalesce((branch).last_seq, 0)::bigint as last_seq,
    (branch).is_head::boolean as is_head
from agui.branches(@thread_id::text, @scope::text) as branch;

-- name: Head :one
select agui.head(@thread_id::text, @scope::text)::text as run_id;

-- name: MergeBase :one
select coalesce(agui.merge_base(@thread_id::text, @run_a::text, @run_b::text, @scope::text), '')::text as run_id;

-- name: MessageOrigin :many
-- One row at most.
select
    (run).depth::int as depth,
    (run).run_id::text as run_id,
    coalesce((run).parent_run_id, '')::text as parent_run_id,
    (run).status::text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq,
    (run).started_at::timestamptz as started_at,
    coalesce((run).ended_at, '0001-01-01 00:00:00+00')::timestamptz as ended_at,
    (run).run_no::int as run_no,
    coalesce((run).error_code, '')::text as error_code,
    coalesce((run).error_message, '')::text as error_message,
    coalesce((run).stop_reason, '')::text as stop_reason,
    coalesce((run).cut_off_reason, '')::text as cut_off_reason
from agui.message_origin(@thread_id::text, @message_id::text, sqlc.narg(run_id)::text, @scope::text) as run;

-- name: BranchPoint :one
select
    coalesce((found).parent_run_id, '')::text as parent_run_id,
    (found).point::text as point,
    (found).is_filled::boolean as is_filled,
    (found).lacks_history::boolean as lacks_history,
    (found).history_bytes::bigint as history_bytes
from agui.branch_point(
    @thread_id::text, @messages::json, sqlc.narg(run_id)::text, @history::text, @is_given::boolean, sqlc.narg(waited_from)::text, @scope::text
) as found;

-- name: AgentMessages :one
select agui.agent_messages(@thread_id::text, @messages::json, sqlc.narg(run_id)::text, @scope::text)::json as messages;

-- name: RunSpans :many
-- The runs of a lineage that have events after after_seq, root first; or the run alone. None: the thread is
-- unknown, and the session reads unknown threads as empty.
select
    (run).run_id::text as run_id,
    (run).run_no::int as run_no,
    (run).status::text as status,
    (run).first_seq::bigint as first_seq,
    coalesce((run).last_seq, 0)::bigint as last_seq
from agui_internal.find_run(@thread_id::text, sqlc.narg(run_id)::text, @scope::text) as leaf
cross join lateral agui_internal.ancestors(leaf, case when @lineage::boolean then @after_seq::bigint else leaf.first_seq end) as run
order by (run).run_no;

-- name: Answered :one
select
    coalesce((found).asking_run_id, '')::text as asking_run_id,
    coalesce((found).answered_by, '')::text as answered_by,
    coalesce((found).answered_at, '0001-01-01 00:00:00+00')::timestamptz as answered_at
from agui.answered(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(asked_by)::text, sqlc.narg(interrupt_ids)::text[], sqlc.narg(question)::json, @scope::text) as found;
