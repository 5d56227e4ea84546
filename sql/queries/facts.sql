-- name: Waiting :many
select
    (item).scope::text as scope,
    (item).thread_id::text as thread_id,
    (item).run_id::text as run_id,
    coalesce((item).agent, '')::text as agent,
    coalesce((item).interrupt_id, '')::text as interrupt_id,
    coalesce((item).reason, '')::text as reason,
    coalesce((item).message, '')::text as message,
    coalesce((item).tool_call_id, '')::text as tool_call_id,
    (item).asked_at::timestamptz as asked_at,
    coalesce((item).expires_at, '0001-01-01 00:00:00+00')::timestamptz as expires_at,
    (item).kind::text as kind,
    coalesce((item).tool, '')::text as tool,
    coalesce((item).arguments, '')::text as arguments
from agui.waiting(@max_rows::int, sqlc.narg(agent)::text, sqlc.narg(scope)::text) as item;

-- name: ToolReport :many
select
    (item).tool::text as tool,
    (item).calls::bigint as calls,
    (item).failed::bigint as failed,
    (item).cut_off::bigint as cut_off,
    (item).waiting::bigint as waiting,
    coalesce(extract(epoch from (item).median_duration), -1)::float8 as median_duration,
    coalesce(extract(epoch from (item).p95_duration), -1)::float8 as p95_duration,
    coalesce((item).last_error, '')::text as last_error
from agui.tool_report(sqlc.narg(since)::timestamptz, sqlc.narg(until)::timestamptz, sqlc.narg(scope)::text) as item;

-- name: AgentReport :many
select
    coalesce((item).agent, '')::text as agent,
    (item).runs::bigint as runs,
    (item).running::bigint as running,
    (item).finished::bigint as finished,
    (item).interrupted::bigint as interrupted,
    (item).cancelled::bigint as cancelled,
    (item).failed::bigint as failed,
    (item).cut_off::bigint as cut_off,
    coalesce(extract(epoch from (item).median_duration), -1)::float8 as median_duration,
    coalesce(extract(epoch from (item).p95_duration), -1)::float8 as p95_duration,
    coalesce(extract(epoch from (item).median_first_token), -1)::float8 as median_first_token,
    coalesce(extract(epoch from (item).p95_first_token), -1)::float8 as p95_first_token
from agui.agent_report(sqlc.narg(since)::timestamptz, sqlc.narg(until)::timestamptz, sqlc.narg(scope)::text) as item;

-- name: ModelReport :many
select
    coalesce((item).provider, '')::text as provider,
    coalesce((item).model, '')::text as model,
    (item).runs::bigint as runs,
    coalesce((item).input_tokens, 0)::float8 as input_tokens,
    coalesce((item).output_tokens, 0)::float8 as output_tokens,
    coalesce((item).total_tokens, 0)::float8 as total_tokens,
    coalesce((item).reasoning_tokens, 0)::float8 as reasoning_tokens,
    coalesce((item).cached_input_tokens, 0)::float8 as cached_input_tokens,
    coalesce((item).cache_write_input_tokens, 0)::float8 as cache_write_input_tokens
from agui.model_report(sqlc.narg(since)::timestamptz, sqlc.narg(until)::timestamptz, sqlc.narg(scope)::text) as item;

-- name: DayReport :many
select
    to_char((item).day, 'YYYY-MM-DD')::text as day,
    (item).threads::bigint as threads,
    (item).runs::bigint as runs,
    (item).failed::bigint as failed,
    (item).events::float8 as events,
    (item).bytes::float8 as bytes
from agui.day_report(sqlc.narg(since)::timestamptz, sqlc.narg(until)::timestamptz, sqlc.narg(scope)::text) as item;

-- name: LastErrors :many
-- A row for each error; if the page has none, one row without a seq.
select
    coalesce((error).seq, 0)::bigint as seq,
    coalesce((error).run_id, '')::text as run_id,
    coalesce((error).kind, '')::text as kind,
    coalesce((error).error_code, '')::text as error_code,
    coalesce((error).error_message, '')::text as error_message,
    coalesce((error).stop_reason, '')::text as stop_reason,
    coalesce((error).cut_off_reason, '')::text as cut_off_reason,
    coalesce((error).tool_call_id, '')::text as tool_call_id,
    coalesce((error).tool, '')::text as tool,
    coalesce((error).recorded_at, '0001-01-01 00:00:00+00')::timestamptz as recorded_at,
    coalesce(page.next_seq, 0)::bigint as next_seq
from agui.last_errors(
    @thread_id::text,
    sqlc.narg(run_id)::text,
    sqlc.narg(at_seq)::bigint,
    @max_rows::int,
    @lineage::boolean,
    @scope::text
) as page
left join lateral unnest(page.errors) as error on true
order by (error).seq;
