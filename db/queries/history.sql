-- name: History :many
-- A last row with seq 0: page_bytes ended the page.
select
    coalesce((item).seq, 0)::bigint as seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).type, '')::pg_catalog.text as type,
    coalesce((item).event_count, 0)::bigint as event_count,
    coalesce((item).created_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as created_at,
    coalesce((item).completed_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as completed_at,
    (item).payload::pg_catalog.json as payload
from agui.history(
    @thread_id::pg_catalog.text,
    sqlc.narg(run_id)::pg_catalog.text,
    @after_seq::bigint,
    sqlc.narg(types)::pg_catalog.text[],
    sqlc.narg(since)::pg_catalog.timestamptz,
    sqlc.narg(until)::pg_catalog.timestamptz,
    @max_rows::int,
    @compressed::boolean,
    sqlc.narg(max_bytes)::int,
    sqlc.narg(max_idle)::interval,
    @lineage::boolean,
    @scope::pg_catalog.text,
    sqlc.narg(page_bytes)::int
) as item;

-- name: SessionMessages :many
select
    coalesce((item).seq, 0)::bigint as seq,
    (item).type::pg_catalog.text as type,
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).created_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as created_at,
    (item).payload::pg_catalog.json as payload
from agui.session_messages(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @after_seq::bigint, @scope::pg_catalog.text) as item;

-- name: AppendSessionMessages :one
select coalesce(pg_catalog.max(agui.append(@thread_id::pg_catalog.text, run.run_id, run.events, 0, scope => @scope::pg_catalog.text)), 0)::bigint as last_seq
from agui.session_runs(@thread_id::pg_catalog.text, @messages::pg_catalog.json, @run_prefix::pg_catalog.text) as run;

-- name: ImportSessionMessages :one
select coalesce(pg_catalog.max(agui.import_events(@thread_id::pg_catalog.text, run.run_id, run.events, 0, scope => @scope::pg_catalog.text)), 0)::bigint as last_seq
from agui.session_runs(@thread_id::pg_catalog.text, @messages::pg_catalog.json, @run_prefix::pg_catalog.text) as run;

-- name: ToolCalls :many
select
    coalesce((item).tool_call_id, '')::pg_catalog.text as tool_call_id,
    coalesce((item).name, '')::pg_catalog.text as name,
    coalesce((item).arguments, '')::pg_catalog.text as arguments,
    (item).arguments_json::pg_catalog.json as arguments_json,
    (item).result::pg_catalog.json as result,
    coalesce((item).parent_message_id, '')::pg_catalog.text as parent_message_id,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).started_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (item).status::pg_catalog.text as status
from agui.tool_calls(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @after_seq::bigint, @scope::pg_catalog.text) as item;

-- name: Activities :many
select
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).activity_type, '')::pg_catalog.text as activity_type,
    (item).content::pg_catalog.json as content,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).started_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as started_at,
    coalesce((item).updated_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as updated_at
from agui.activities(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text) as item;

-- name: Usage :many
-- -1: not reported.
select
    coalesce((item).provider, '')::pg_catalog.text as provider,
    coalesce((item).model, '')::pg_catalog.text as model,
    coalesce((item).input_tokens, operator(pg_catalog.-)1)::bigint as input_tokens,
    coalesce((item).output_tokens, operator(pg_catalog.-)1)::bigint as output_tokens,
    coalesce((item).total_tokens, operator(pg_catalog.-)1)::bigint as total_tokens,
    coalesce((item).reasoning_tokens, operator(pg_catalog.-)1)::bigint as reasoning_tokens,
    coalesce((item).cached_input_tokens, operator(pg_catalog.-)1)::bigint as cached_input_tokens,
    coalesce((item).cache_write_input_tokens, operator(pg_catalog.-)1)::bigint as cache_write_input_tokens,
    (item).runs::bigint as runs,
    (item).all_runs::bigint as all_runs,
    (item).runs_without_usage::bigint as runs_without_usage
from agui.usage(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @lineage::boolean, @whole_thread::boolean, @scope::pg_catalog.text) as item;

-- name: Subagents :many
select
    (item).depth::int as depth,
    (item).subagent_run_id::pg_catalog.text as subagent_run_id,
    coalesce((item).name, '')::pg_catalog.text as name,
    coalesce((item).description, '')::pg_catalog.text as description,
    coalesce((item).parent_subagent_run_id, '')::pg_catalog.text as parent_subagent_run_id,
    coalesce((item).parent_tool_call_id, '')::pg_catalog.text as parent_tool_call_id,
    coalesce((item).parent_message_id, '')::pg_catalog.text as parent_message_id,
    (item).status::pg_catalog.text as status,
    (item).run_id::pg_catalog.text as run_id,
    (item).last_run_id::pg_catalog.text as last_run_id,
    (item).first_seq::bigint as first_seq,
    (item).last_seq::bigint as last_seq,
    (item).event_count::bigint as event_count,
    (item).started_at::pg_catalog.timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (item).duration::interval as duration,
    (item).result::pg_catalog.json as result,
    coalesce((item).interrupt_ids, '{}')::pg_catalog.text[] as interrupt_ids,
    coalesce((item).error_message, '')::pg_catalog.text as error_message,
    coalesce((item).error_code, '')::pg_catalog.text as error_code,
    (item).usage::pg_catalog.json as usage
from agui.subagents(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @lineage::boolean, @scope::pg_catalog.text) as item;

-- name: RunToolCalls :many
select
    coalesce((item).tool_call_id, '')::pg_catalog.text as tool_call_id,
    coalesce((item).name, '')::pg_catalog.text as name,
    coalesce((item).arguments, '')::pg_catalog.text as arguments,
    (item).arguments_json::pg_catalog.json as arguments_json,
    (item).result::pg_catalog.json as result,
    coalesce((item).parent_message_id, '')::pg_catalog.text as parent_message_id,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).started_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as started_at,
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (item).status::pg_catalog.text as status
from agui.run_tool_calls(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(at_seq)::bigint, sqlc.narg(at_time)::pg_catalog.timestamptz, @scope::pg_catalog.text) as item;

-- name: LastMessages :many
select
    (item).position::int as position,
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).role, '')::pg_catalog.text as role,
    (item).message::pg_catalog.json as message,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).last_seq, 0)::bigint as last_seq,
    coalesce((item).started_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as started_at,
    coalesce((item).updated_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as updated_at,
    (item).calls::pg_catalog.json as calls,
    (item).cursor::pg_catalog.text as cursor
from agui.last_messages(
    @thread_id::pg_catalog.text,
    sqlc.narg(run_id)::pg_catalog.text,
    sqlc.narg(at_seq)::bigint,
    sqlc.narg(at_time)::pg_catalog.timestamptz,
    sqlc.narg(cursor)::pg_catalog.text,
    @max_rows::int,
    @scope::pg_catalog.text
) as item;
