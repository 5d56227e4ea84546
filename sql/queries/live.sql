-- name: AppendMany :many
select
    (answer).call_no::int as call_no,
    coalesce((answer).last_seq, 0)::bigint as last_seq,
    coalesce((answer).error_code, '')::text as error_code,
    coalesce((answer).error, '')::text as error,
    coalesce((answer).detail, '')::text as detail,
    coalesce((answer).hint, '')::text as hint,
    -- The zero time if it is null.
    coalesce((answer).recorded_at, '0001-01-01 00:00:00Z')::timestamptz as recorded_at
from agui.append_many(
    @thread_ids::text[], @run_ids::text[], cast(@events::text[] as json[]), @after_seqs::bigint[],
    -- varchar: elements may be null.
    cast(@inputs::varchar[] as json[]), cast(@parent_run_ids::varchar[] as text[]),
    @parallel::boolean[], @strict::boolean, @wait::boolean, @durable::boolean, @scopes::text[]
) as answer;

-- name: KeepAlive :many
select
    (signal).call_no::int as call_no,
    (signal).status::text as status,
    ((signal).stop_requested_at is not null)::boolean as stop_requested,
    coalesce((signal).stop_reason, '')::text as stop_reason,
    coalesce((signal).cut_off_reason, '')::text as cut_off_reason
from agui.keep_alive(@thread_ids::text[], @run_ids::text[], @detach::boolean, @scopes::text[]) as signal;

-- name: OpeningEvents :many
-- The events that began what a run had open at a seq: messages, tool calls, steps.
select agui_internal.json_unguard((part).event::text)::json as event
from agui.run
cross join lateral agui_internal.open_parts(run, @at_seq::bigint) as part
where run.thread_key = agui_internal.visible_thread_key(@scope::text, @thread_id::text) and run.run_id = @run_id::text
order by (part).opened_at;

-- name: Poll :many
select
    (item).thread_no::int as thread_no,
    coalesce((item).run_id, '')::text as run_id,
    coalesce((item).status, '')::text as status,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).n, 0)::int as n,
    coalesce((item).recorded_at, '0001-01-01 00:00:00+00')::timestamptz as recorded_at,
    coalesce((item).earlier_us, '{}')::int[] as earlier_us,
    (item).events::json as events,
    coalesce((item).problem, '')::text as problem
from agui.poll(
    @thread_ids::text[], @after_seqs::bigint[],
    array(
        -- the zero time of Go: not known
        select case when after_time <> '0001-01-01 00:00:00+00' then after_time end
        from unnest(@after_times::timestamptz[]) with ordinality as item (after_time, thread_no)
        order by thread_no
    ),
    @max_rows::int, @page_bytes::int, @scopes::text[]
) as item;

-- name: RunStatus :one
select
    (item).run_id::text as run_id,
    coalesce((item).parent_run_id, '')::text as parent_run_id,
    (item).status::text as status,
    (item).first_seq::bigint as first_seq,
    (item).last_seq::bigint as last_seq,
    (item).started_at::timestamptz as started_at,
    -- The zero time of Go: not yet.
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::timestamptz as ended_at,
    (item).alive_at::timestamptz as alive_at,
    (item).is_stale::boolean as is_stale,
    (item).has_heartbeat::boolean as has_heartbeat,
    coalesce((item).stop_requested_at, '0001-01-01 00:00:00+00')::timestamptz as stop_requested_at,
    coalesce((item).stop_reason, '')::text as stop_reason,
    coalesce((item).cut_off_reason, '')::text as cut_off_reason,
    coalesce((item).error_code, '')::text as error_code,
    coalesce((item).error_message, '')::text as error_message
from agui.status(@thread_id::text, sqlc.narg(run_id)::text, @scope::text) as item;

-- name: RequestStop :one
select agui.request_stop(@thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(reason)::text, @scope::text)::int as runs;

-- name: ClaimRun :one
select
    (claim).run_id::text as run_id,
    coalesce((claim).parent_run_id, '')::text as parent_run_id,
    (claim).parallel::boolean as parallel,
    (claim).claimed_at::timestamptz as claimed_at,
    (claim).alive_until::timestamptz as alive_until
from agui.claim_run(
    @thread_id::text, @run_id::text, @claimant::text, sqlc.narg(input)::json, sqlc.narg(parent_run_id)::text, @parallel::boolean, @scope::text
) as claim;

-- name: ReleaseClaim :one
select agui.release_claim(@thread_id::text, @run_id::text, @claimant::text, @scope::text)::boolean as was_claimed;

-- name: Claims :many
select
    (claim).run_id::text as run_id,
    coalesce((claim).parent_run_id, '')::text as parent_run_id,
    (claim).parallel::boolean as parallel,
    (claim).claimed_at::timestamptz as claimed_at,
    (claim).alive_until::timestamptz as alive_until
from agui.claims(@thread_id::text, @scope::text) as claim;

-- name: StaleRuns :many
select (run).thread_key::uuid as thread_key, (run).run_no::int as run_no
from agui_internal.stale_runs() as run;

-- name: NoteReap :exec
select agui_internal.note_uptime(is_writer => false), agui_internal.forget_ended_runs('reap'), agui_internal.forget_claims();

-- name: FindEnds :one
select agui_internal.find_ends()::int as runs;

-- name: LimitLockWait :exec
-- As in the other steps of a job (agui_internal.begin_step). But the events that close a run are
-- part of the log, so this commit waits for the disk as appends do.
select set_config('lock_timeout', '200ms', true);

-- name: ReapRun :one
-- 0: it is alive, has ended, or its thread is being written to.
select coalesce(agui_internal.reap_run(@thread_key::uuid, @run_no::int), 0)::bigint as last_seq;

-- name: RunsInProgress :one
-- The end of the log of a thread, and its runs in progress. 0: there is no such thread.
select
    coalesce((
        select batch.first_seq + batch.n - 1
        from agui.batch
        where batch.thread_key = agui_internal.visible_thread_key(@scope::text, @thread_id::text)
        order by batch.first_seq desc
        limit 1
    ), 0)::bigint as log_end,
    array(
        select run.run_id
        from agui.run
        where run.thread_key = agui_internal.visible_thread_key(@scope::text, @thread_id::text) and run.status = 'running'
    )::text[] as run_ids;

-- name: Attach :one
select
    coalesce((item).run_id, '')::text as run_id,
    coalesce((item).status, '')::text as status,
    (item).running::text[] as running,
    (item).seq::bigint as seq,
    coalesce((item).recorded_at, '0001-01-01 00:00:00+00')::timestamptz as recorded_at,
    (item).events::json as events
from agui.attach(
    @thread_id::text, sqlc.narg(run_id)::text,
    -- A follower of all runs gets the events after the beginning of the first run in progress one
    -- by one, unless that run is the head alone.
    least(sqlc.narg(at_seq)::bigint, case
        when @all_runs::boolean then (
            select min(run.first_seq) - 1
            from agui.run
            where run.thread_key = agui_internal.visible_thread_key(@scope::text, @thread_id::text) and run.status = 'running'
            having bool_or(exists (select from agui.run as later where later.thread_key = run.thread_key and later.run_no > run.run_no))
        )
    end),
    sqlc.narg(at_time)::timestamptz, @after_seq::bigint, @shape::text, @scope::text
) as item;

-- name: AttachPart :one
select
    coalesce((attachment).run_id, '')::text as run_id,
    coalesce((attachment).status, '')::text as status,
    (attachment).running::text[] as running,
    (attachment).seq::bigint as seq,
    coalesce((attachment).recorded_at, '0001-01-01 00:00:00+00')::timestamptz as recorded_at,
    (attachment).events::json as events,
    coalesce(next_part, 0)::int as next_part
from agui.attach_part(
    @thread_id::text, sqlc.narg(run_id)::text, sqlc.narg(at_seq)::bigint, @part::int, @part_bytes::int, @customs_of::text, @scope::text
) as item;

-- name: KeepAgentError :exec
select agui.keep_agent_error(@thread_id::text, sqlc.narg(run_id)::text, @status::int, @content_type::text, @body::bytea, @scope::text);

-- name: AgentError :many
-- One row at most.
select
    kept.status::int as status,
    kept.content_type::text as content_type,
    kept.body::bytea as body,
    kept.recorded_at::timestamptz as recorded_at
from agui.get_agent_error(@thread_id::text, sqlc.narg(run_id)::text, @scope::text) as kept;
