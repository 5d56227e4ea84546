-- name: Waiting :many
select
    (item).scope::pg_catalog.text as scope,
    (item).thread_id::pg_catalog.text as thread_id,
    (item).run_id::pg_catalog.text as run_id,
    coalesce((item).agent, '')::pg_catalog.text as agent,
    coalesce((item).interrupt_id, '')::pg_catalog.text as interrupt_id,
    coalesce((item).reason, '')::pg_catalog.text as reason,
    coalesce((item).message, '')::pg_catalog.text as message,
    coalesce((item).tool_call_id, '')::pg_catalog.text as tool_call_id,
    (item).asked_at::pg_catalog.timestamptz as asked_at,
    coalesce((item).expires_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as expires_at,
    (item).kind::pg_catalog.text as kind,
    coalesce((item).tool, '')::pg_catalog.text as tool,
    coalesce((item).arguments, '')::pg_catalog.text as arguments
from agui.waiting(@max_rows::int, sqlc.narg(agent)::pg_catalog.text, sqlc.narg(scope)::pg_catalog.text) as item;

-- name: ToolReport :many
select
    (item).tool::pg_catalog.text as tool,
    (item).calls::bigint as calls,
    (item).failed::bigint as failed,
    (item).cut_off::bigint as cut_off,
    (item).waiting::bigint as waiting,
    coalesce(extract(epoch from (item).median_duration), operator(pg_catalog.-)1)::pg_catalog.float8 as median_duration,
    coalesce(extract(epoch from (item).p95_duration), operator(pg_catalog.-)1)::pg_catalog.float8 as p95_duration,
    coalesce((item).last_error, '')::pg_catalog.text as last_error
from agui.tool_report(sqlc.narg(since)::pg_catalog.timestamptz, sqlc.narg(until)::pg_catalog.timestamptz, sqlc.narg(scope)::pg_catalog.text) as item;

-- name: AgentReport :many
select
    coalesce((item).agent, '')::pg_catalog.text as agent,
    (item).runs::bigint as runs,
    (item).running::bigint as running,
    (item).finished::bigint as finished,
    (item).interrupted::bigint as interrupted,
    (item).cancelled::bigint as cancelled,
    (item).failed::bigint as failed,
    (item).cut_off::bigint as cut_off,
    coalesce(extract(epoch from (item).median_duration), operator(pg_catalog.-)1)::pg_catalog.float8 as median_duration,
    coalesce(extract(epoch from (item).p95_duration), operator(pg_catalog.-)1)::pg_catalog.float8 as p95_duration,
    coalesce(extract(epoch from (item).median_first_token), operator(pg_catalog.-)1)::pg_catalog.float8 as median_first_token,
    coalesce(extract(epoch from (item).p95_first_token), operator(pg_catalog.-)1)::pg_catalog.float8 as p95_first_token
from agui.agent_report(sqlc.narg(since)::pg_catalog.timestamptz, sqlc.narg(until)::pg_catalog.timestamptz, sqlc.narg(scope)::pg_catalog.text) as item;

-- name: ModelReport :many
select
    coalesce((item).provider, '')::pg_catalog.text as provider,
    coalesce((item).model, '')::pg_catalog.text as model,
    (item).runs::bigint as runs,
    coalesce((item).input_tokens, 0)::pg_catalog.float8 as input_tokens,
    coalesce((item).output_tokens, 0)::pg_catalog.float8 as output_tokens,
    coalesce((item).total_tokens, 0)::pg_catalog.float8 as total_tokens,
    coalesce((item).reasoning_tokens, 0)::pg_catalog.float8 as reasoning_tokens,
    coalesce((item).cached_input_tokens, 0)::pg_catalog.float8 as cached_input_tokens,
    coalesce((item).cache_write_input_tokens, 0)::pg_catalog.float8 as cache_write_input_tokens
from agui.model_report(sqlc.narg(since)::pg_catalog.timestamptz, sqlc.narg(until)::pg_catalog.timestamptz, sqlc.narg(scope)::pg_catalog.text) as item;

-- name: DayReport :many
select
    pg_catalog.to_char((item).day, 'YYYY-MM-DD')::pg_catalog.text as day,
    (item).threads::bigint as threads,
    (item).runs::bigint as runs,
    (item).failed::bigint as failed,
    (item).events::pg_catalog.float8 as events,
    (item).bytes::pg_catalog.float8 as bytes
from agui.day_report(sqlc.narg(since)::pg_catalog.timestamptz, sqlc.narg(until)::pg_catalog.timestamptz, sqlc.narg(scope)::pg_catalog.text) as item;

-- name: LastErrors :many
-- A row for each error; if the page has none, one row without a seq.
select
    coalesce((error).seq, 0)::bigint as seq,
    coalesce((error).run_id, '')::pg_catalog.text as run_id,
    coalesce((error).kind, '')::pg_catalog.text as kind,
    coalesce((error).error_code, '')::pg_catalog.text as error_code,
    coalesce((error).error_message, '')::pg_catalog.text as error_message,
    coalesce((error).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((error).cut_off_reason, '')::pg_catalog.text as cut_off_reason,
    coalesce((error).tool_call_id, '')::pg_catalog.text as tool_call_id,
    coalesce((error).tool, '')::pg_catalog.text as tool,
    coalesce((error).recorded_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as recorded_at,
    coalesce(page.next_seq, 0)::bigint as next_seq
from agui.last_errors(
    @thread_id::pg_catalog.text,
    sqlc.narg(run_id)::pg_catalog.text,
    sqlc.narg(at_seq)::bigint,
    @max_rows::int,
    @lineage::boolean,
    @scope::pg_catalog.text
) as page
left join lateral pg_catalog.unnest(page.errors) as error on true
order by (error).seq;
