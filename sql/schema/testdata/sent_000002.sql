-- name: Abandon :one
select agui.abandon($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::boolean, $5::boolean, $6::pg_catalog.text)::bigint as last_seq;

-- name: AppendEvents :one
select agui.append(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.json, $4::bigint, $5::pg_catalog.json, $6::pg_catalog.text,
    $7::boolean, $8::boolean, $9::pg_catalog.text
)::bigint as last_seq;

-- name: ImportEvents :one
select agui.import_events(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.json, $4::bigint, $5::pg_catalog.json, $6::pg_catalog.text,
    $7::boolean, $8::boolean, $9::pg_catalog.text
)::bigint as last_seq;

-- name: RunInput :many
select given.input
from agui_internal.find_run($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) as run
join agui.input as given on given.thread_key operator(pg_catalog.=) run.thread_key and given.run_no operator(pg_catalog.=) run.run_no;

-- name: ChainBatches :many
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).bytes::bigint as bytes, (span).has_more::boolean as has_more
    from agui_internal.page_of_batches(
        $2::pg_catalog.uuid, $3::bigint, 9223372036854775807, $4::int[], $5::int, $6::bigint
    ) as span
)
select
    batch.first_seq, batch.n, batch.run_no, batch.recorded_at, coalesce(batch.earlier_us, '{}')::int[] as earlier_us, batch.hash,
    coalesce(batch.links, '{}')::int[] as links,
    (case when (select page.bytes from page) operator(pg_catalog.<=) $1::bigint then batch.events end)::pg_catalog.json as events,
    (select page.bytes from page)::bigint as page_bytes,
    (select page.has_more from page)::boolean as has_more
from agui.batch
where batch.thread_key operator(pg_catalog.=) $2::pg_catalog.uuid
    and batch.first_seq operator(pg_catalog.>=) $3::bigint and batch.first_seq operator(pg_catalog.<=) (select page.last_seq from page)
    and batch.run_no operator(pg_catalog.=) any ($4::int[])
order by batch.first_seq;

-- name: ChainRuns :many
select
    run.run_no, run.run_id, run.parent_no, run.first_seq,
    agui_internal.stored_input_hash(run.thread_key, run.run_no)::pg_catalog.bytea as input_hash
from agui.run
where run.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid
order by run.run_no;

-- name: ChainState :one
select
    thread.scope, thread.thread_id,
    coalesce(due.first_seq, 0)::bigint as due_seq,
    coalesce(due.run_id, '')::pg_catalog.text as due_run_id,
    coalesce(due.is_certain, false)::boolean as is_certain
from agui.thread
cross join lateral (
    select pg_catalog.min(chained.since) as since from agui_internal.chained_scope as chained where chained.is_all or chained.scope operator(pg_catalog.=) thread.scope
) as chain
left join lateral (
    select run.first_seq, run.run_id, (run.started_at operator(pg_catalog.>) (chain.since operator(pg_catalog.+) interval '1 minute')) as is_certain
    from agui.run
    where run.thread_key operator(pg_catalog.=) thread.thread_key and run.started_at operator(pg_catalog.>) chain.since
    -- A certain one, if there is any.
    order by (run.started_at operator(pg_catalog.>) (chain.since operator(pg_catalog.+) interval '1 minute')) desc, run.run_no
    limit 1
) as due on true
where thread.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid;

-- name: Erasures :many
select (erasure).erased_at::pg_catalog.timestamptz as erased_at, (erasure).events::bigint as events
from agui_internal.erasures_of(agui.thread_key($1::pg_catalog.text, $2::pg_catalog.text)) as erasure;

-- name: Heads :many
select (page).thread_key::pg_catalog.uuid as thread_key, (page).scope::pg_catalog.text as scope, (page).thread_id::pg_catalog.text as thread_id, (page).seq::bigint as seq, (page).hash::pg_catalog.bytea as hash,
    (page).recorded_at::pg_catalog.timestamptz as recorded_at
from agui_internal.page_of_heads($1::pg_catalog.text, $2::pg_catalog.uuid, $3::int) as page;

-- name: AddMessages :exec
select agui_internal.add_messages(
    $1::pg_catalog.uuid, $2::int[], $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.text[], $6::boolean[]
);

-- name: AddSnapshot :exec
select agui_internal.add_snapshot(
    $1::pg_catalog.uuid, $2::int, $3::bigint, $4::int[], $5::int[], $6::pg_catalog.text, $7::boolean,
    $8::pg_catalog.json, $9::pg_catalog.json
);

-- name: BatchesBetween :many
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).bytes::bigint as bytes, (span).has_more::boolean as has_more
    from agui_internal.page_of_batches(
        $3::pg_catalog.uuid, $4::bigint, $6::bigint, $5::int[], $7::int, $8::bigint, $2::bigint[]
    ) as span
)
select
    batch.first_seq, batch.n, batch.run_no,
    (case when (select page.bytes from page) operator(pg_catalog.<=) $1::bigint then batch.events end)::pg_catalog.json as events,
    agui_internal.stored_bytes(batch.events, batch.earlier_us)::bigint as stored_bytes,
    (
        select beside.input
        from pg_catalog.unnest($2::bigint[]) as place (seq)
        join agui.run_input as beside
            on beside.thread_key operator(pg_catalog.=) batch.thread_key and beside.run_no operator(pg_catalog.=) batch.run_no
        where place.seq operator(pg_catalog.>=) batch.first_seq and place.seq operator(pg_catalog.<) (batch.first_seq operator(pg_catalog.+) batch.n)
            and (select page.bytes from page) operator(pg_catalog.<=) $1::bigint
    )::pg_catalog.json as input,
    (select page.bytes from page)::bigint as page_bytes,
    (select page.has_more from page)::boolean as has_more
from agui.batch
where batch.thread_key operator(pg_catalog.=) $3::pg_catalog.uuid
    and batch.first_seq operator(pg_catalog.>=) $4::bigint and batch.first_seq operator(pg_catalog.<=) (select page.last_seq from page)
    and batch.run_no operator(pg_catalog.=) any ($5::int[])
order by batch.first_seq;

-- name: BeginStep :exec
select agui_internal.begin_step();

-- name: ChooseThreadToCompact :one
select (next).thread_key::pg_catalog.uuid as thread_key, (next).run_nos[1]::int as run_no, (next).place::pg_catalog.timestamptz as place
from agui_internal.choose_thread_to_compact(
    coalesce($1::pg_catalog.timestamptz, '-infinity'), coalesce($2::pg_catalog.timestamptz, 'infinity'), $3::pg_catalog.uuid[]
) as next
where (next).thread_key is not null;

-- name: ChooseToCompact :one
select (next).thread_key::pg_catalog.uuid as thread_key, (next).run_nos[1]::int as run_no, greatest((next).place, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as place
from pg_catalog.unnest(agui_internal.choose_to_compact(
    $1::pg_catalog.uuid, coalesce($2::pg_catalog.timestamptz, '-infinity'), coalesce($3::pg_catalog.timestamptz, 'infinity'),
    $4::pg_catalog.uuid[], true, $5::int
)) as next;

-- name: CompactRunning :exec
call agui.compact_running($1::int, $2::interval);

-- name: CountRunsToCompact :one
select pg_catalog.count(*)
from agui.run
where run.log_bytes is null and run.status operator(pg_catalog.<>) 'running' and run.ended_at operator(pg_catalog.<=) coalesce($1::pg_catalog.timestamptz, 'infinity');

-- name: DropNeedlessSnapshot :one
select agui_internal.drop_needless_snapshot($1::pg_catalog.uuid, $2::int)::boolean as dropped;

-- name: DropSnapshots :exec
select agui_internal.drop_snapshots($1::pg_catalog.uuid, $2::int[]);

-- name: FoldBase :one
select coalesce(agui_internal.fold_base($1::pg_catalog.uuid, $2::int), 0)::int as run_no;

-- name: HoldThread :one
select agui_internal.hold_thread($1::pg_catalog.uuid)::boolean as is_held;

-- name: InputMessages :many
select
    part.part_no,
    coalesce(pg_catalog.strpos(part.message_id, '\') operator(pg_catalog.=) 0, false)::boolean as has_id,
    coalesce(part.message_id, '')::pg_catalog.text as message_id,
    part.bytes,
    (case when (part.message_id operator(pg_catalog.=) any ($1::pg_catalog.text[])) is not true then part.body end)::pg_catalog.json as body
from agui.input_part as part
where part.thread_key operator(pg_catalog.=) $2::pg_catalog.uuid and part.kind operator(pg_catalog.=) 'message' and part.part_no operator(pg_catalog.=) any ($3::int[]);

-- name: InputPlaces :many
select
    (place).run_no::int as run_no, (place).seq::bigint as seq, (place).is_start::boolean as is_start,
    exists (
        select
        from agui.run_input as stored
        where stored.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid and stored.run_no operator(pg_catalog.=) (place).run_no and stored.skeleton is not null
    )::boolean as in_parts
from agui_internal.input_places($1::pg_catalog.uuid, $2::int[], $3::bigint[]) as place;

-- name: InputsInParts :many
select
    stored.run_no,
    agui_internal.joined_input(stored.thread_key, stored.skeleton, agui_internal.with_messages(stored.sections, null))::pg_catalog.json as rest,
    coalesce(pg_catalog.octet_length(section.separator), 0)::int as separator_bytes,
    (case when section.part_nos is not null then array(
        select number.part_no
        from pg_catalog.unnest(section.part_nos) with ordinality as range (part_nos, place)
        cross join lateral pg_catalog.generate_series(pg_catalog.lower(range.part_nos), pg_catalog.upper(range.part_nos) operator(pg_catalog.-) 1) as number (part_no)
        order by range.place, number.part_no
    ) end)::int[] as part_nos
from agui.run_input as stored
left join lateral pg_catalog.jsonb_to_recordset(stored.sections) as section (kind pg_catalog.text, separator pg_catalog.text, part_nos int4range[])
    on section.kind operator(pg_catalog.=) 'message'
where stored.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid and stored.run_no operator(pg_catalog.=) any ($2::int[]) and stored.skeleton is not null;

-- name: LineageBehind :many
select (ancestor).run_no::int as run_no, (ancestor).first_seq::bigint as first_seq, (ancestor).last_seq::bigint as last_seq
from agui_internal.lineage_behind($1::pg_catalog.uuid, $2::int, $3::int) as ancestor
order by (ancestor).run_no;

-- name: LogBytesSince :one
select agui_internal.log_bytes_since($1::pg_catalog.uuid, $2::int, $3::int)::bigint as log_bytes;

-- name: MarkCompacted :exec
select agui_internal.mark_compacted($1::pg_catalog.uuid, $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]);

-- name: NoteAttempt :exec
select agui_internal.note_attempt($1::pg_catalog.text, $2::pg_catalog.uuid, array[$3::int]);

-- name: NoteFailure :one
select agui_internal.note_failure($1::pg_catalog.text, $2::pg_catalog.uuid, $3::pg_catalog.text, $4::pg_catalog.text, array[$5::int])::boolean as is_counted;

-- name: NoteSuccess :exec
select agui_internal.note_success($1::pg_catalog.text, $2::pg_catalog.uuid, array[$3::int]);

-- name: Quarantined :one
select pg_catalog.count(*) from agui.quarantine where quarantine.job operator(pg_catalog.=) $1::pg_catalog.text;

-- name: RefuseDamagedLog :exec
select agui_internal.refuse_damaged_log($1::pg_catalog.uuid, run_no) from pg_catalog.unnest($2::int[]) as run_no;

-- name: Retry :one
select agui.retry($1::pg_catalog.text)::bigint as runs;

-- name: RunsToCompact :many
select
    due.run_no, due.parent_no, due.first_seq, due.last_seq::bigint as last_seq,
    agui_internal.input_bytes(due.thread_key, due.run_no)::bigint as input_bytes,
    due.has_input::boolean as has_input,
    due.has_snapshot::boolean as has_snapshot,
    (
        select run.run_no
        from agui.run
        where run.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid and run.status operator(pg_catalog.<>) 'running'
        order by run.run_no desc
        limit 1
    )::int as tip,
    (case when exists (select from agui.snapshot where snapshot.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid)
        then coalesce(agui_internal.previous_tip($1::pg_catalog.uuid), 0) else 0 end)::int as previous_tip,
    coalesce((select pg_catalog.max(message.message_no) from agui.message_version as message where message.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid), 0)::int as last_message_no
from (
    select
        run.thread_key, run.run_no, run.parent_no, run.first_seq, run.last_seq,
        exists (select from agui.run_input where run_input.thread_key operator(pg_catalog.=) run.thread_key and run_input.run_no operator(pg_catalog.=) run.run_no) as has_input,
        exists (select from agui.snapshot where snapshot.thread_key operator(pg_catalog.=) run.thread_key and snapshot.run_no operator(pg_catalog.=) run.run_no) as has_snapshot
    from agui.run
    where run.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid
        and run.log_bytes is null
        and run.status operator(pg_catalog.<>) 'running'
        and run.ended_at operator(pg_catalog.<=) coalesce($2::pg_catalog.timestamptz, 'infinity')
        and run.run_no operator(pg_catalog.>) case when $3::int operator(pg_catalog.=) 0 then $4::int else $3::int operator(pg_catalog.-) 1 end
        and run.run_no operator(pg_catalog.<=) case when $3::int operator(pg_catalog.=) 0 then 2147483647 else $3::int end
    order by run.run_no
    limit $5::int
) as due
order by due.run_no;

-- name: SnapshotAt :one
select
    snapshot.through_seq,
    (case when agui_internal.fits(snapshot.state, $1::bigint) then snapshot.state end)::pg_catalog.json as state,
    snapshot.interrupts, snapshot.lanes
from agui.snapshot
where snapshot.thread_key operator(pg_catalog.=) $2::pg_catalog.uuid and snapshot.run_no operator(pg_catalog.=) $3::int;

-- name: SnapshotMessages :many
select message.message_no, (case when agui_internal.fits(message.body, $1::bigint) then message.body end)::pg_catalog.json as body
from agui.snapshot
cross join pg_catalog.unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
join agui.message
    on message.thread_key operator(pg_catalog.=) snapshot.thread_key
        and message.message_no operator(pg_catalog.>=) pg_catalog.lower(part.message_nos) and message.message_no operator(pg_catalog.<) pg_catalog.upper(part.message_nos)
where snapshot.thread_key operator(pg_catalog.=) $2::pg_catalog.uuid and snapshot.run_no operator(pg_catalog.=) $3::int
order by part.position, message.message_no;

-- name: SplitInputs :exec
call agui_internal.split_inputs($1::interval);

-- name: TakeBackAttempt :exec
select agui_internal.take_back_attempt($1::pg_catalog.text, $2::pg_catalog.uuid, array[$3::int]);

-- name: TimeAgo :one
select (pg_catalog.clock_timestamp() operator(pg_catalog.-) $1::interval)::pg_catalog.timestamptz as at;

-- name: Erase :one
select (erasure).runs::int as runs, (erasure).events::bigint as events
from agui.erase($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) as erasure;

-- name: EraseThread :one
select (erasure).runs::int as runs, (erasure).events::bigint as events
from agui_internal.erase_thread($1::pg_catalog.uuid, $2::pg_catalog.text, $3::interval) as erasure
where (erasure).erased_key is not null;

-- name: LiftErasure :one
select agui.lift_erasure($1::pg_catalog.text, $2::pg_catalog.text)::boolean as was_erased;

-- name: ThreadsWithoutNews :many
select
    (thread).thread_key::pg_catalog.uuid as thread_key, (thread).scope::pg_catalog.text as scope, (thread).thread_id::pg_catalog.text as thread_id,
    (thread).last_news_at::pg_catalog.timestamptz as last_news_at, (thread).events::bigint as events
from agui_internal.inactive_threads($1::interval, $2::pg_catalog.text, $3::pg_catalog.uuid, $4::int) as thread;

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
from agui.activities($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text) as item;

-- name: AppendSessionMessages :one
select coalesce(pg_catalog.max(agui.append($1::pg_catalog.text, run.run_id, run.events, 0, scope => $2::pg_catalog.text)), 0)::bigint as last_seq
from agui.session_runs($1::pg_catalog.text, $3::pg_catalog.json, $4::pg_catalog.text) as run;

-- name: History :many
select
    (item).seq::bigint as seq,
    (item).last_seq::bigint as last_seq,
    (item).run_id::pg_catalog.text as run_id,
    (item).type::pg_catalog.text as type,
    (item).event_count::bigint as event_count,
    (item).created_at::pg_catalog.timestamptz as created_at,
    coalesce((item).completed_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as completed_at,
    (item).payload::pg_catalog.json as payload
from agui.history(
    $1::pg_catalog.text,
    $2::pg_catalog.text,
    $3::bigint,
    $4::pg_catalog.text[],
    $5::pg_catalog.timestamptz,
    $6::pg_catalog.timestamptz,
    $7::int,
    $8::boolean,
    $9::int,
    $10::interval,
    $11::boolean,
    $12::pg_catalog.text
) as item;

-- name: ImportSessionMessages :one
select coalesce(pg_catalog.max(agui.import_events($1::pg_catalog.text, run.run_id, run.events, 0, scope => $2::pg_catalog.text)), 0)::bigint as last_seq
from agui.session_runs($1::pg_catalog.text, $3::pg_catalog.json, $4::pg_catalog.text) as run;

-- name: SessionMessages :many
select
    coalesce((item).seq, 0)::bigint as seq,
    (item).type::pg_catalog.text as type,
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).created_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as created_at,
    (item).payload::pg_catalog.json as payload
from agui.session_messages($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::bigint, $6::pg_catalog.text) as item;

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
from agui.subagents($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::boolean, $6::pg_catalog.text) as item;

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
from agui.tool_calls($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::bigint, $6::pg_catalog.text) as item;

-- name: Usage :many
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
from agui.usage($1::pg_catalog.text, $2::pg_catalog.text, $3::boolean, $4::boolean, $5::pg_catalog.text) as item;

-- name: AllowIdleTransaction :exec
select
    pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true),
    case when pg_catalog.current_setting('transaction_timeout', true) is not null then pg_catalog.set_config('transaction_timeout', '0', true) end;

-- name: FoldLimits :one
select
    (limits).document_bytes::bigint as document_bytes,
    (limits).document_depth::int as document_depth,
    (limits).patch_operations::int as patch_operations,
    (limits).patch_copied_bytes::bigint as patch_copied_bytes,
    (limits).patch_shifted_items::bigint as patch_shifted_items,
    (limits).fold_bytes::bigint as fold_bytes,
    (limits).fold_messages::int as fold_messages,
    (limits).fold_lanes::int as fold_lanes,
    (limits).fold_fuel::bigint as fold_fuel
from agui_internal.limits_of_folds() as limits;

-- name: JobLockProblem :one
select coalesce(agui_internal.job_lock_problem($1::pg_catalog.text), '')::pg_catalog.text as problem;

-- name: TakeJobLock :one
select
    pg_catalog.pg_is_in_recovery()::boolean as is_standby,
    (not pg_catalog.pg_is_in_recovery() and pg_catalog.pg_try_advisory_xact_lock(agui_internal.job_lock_id($1::pg_catalog.text)))::boolean as is_taken;

-- name: AppendMany :many
select
    (answer).call_no::int as call_no,
    coalesce((answer).last_seq, 0)::bigint as last_seq,
    coalesce((answer).error_code, '')::pg_catalog.text as error_code,
    coalesce((answer).error, '')::pg_catalog.text as error,
    coalesce((answer).detail, '')::pg_catalog.text as detail,
    coalesce((answer).hint, '')::pg_catalog.text as hint,
    -- The zero time if it is null.
    coalesce((answer).recorded_at, '0001-01-01 00:00:00Z')::pg_catalog.timestamptz as recorded_at
from agui.append_many(
    $1::pg_catalog.text[], $2::pg_catalog.text[], cast($3::pg_catalog.text[] as pg_catalog.json[]), $4::bigint[],
    -- varchar: elements may be null.
    cast($5::varchar[] as pg_catalog.json[]), cast($6::varchar[] as pg_catalog.text[]),
    $7::boolean[], $8::boolean, $9::boolean, $10::boolean, $11::pg_catalog.text[]
) as answer;

-- name: Attach :one
select
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).status, '')::pg_catalog.text as status,
    (item).running::pg_catalog.text[] as running,
    (item).seq::bigint as seq,
    coalesce((item).recorded_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as recorded_at,
    (item).events::pg_catalog.json as events
from agui.attach(
    $1::pg_catalog.text, $2::pg_catalog.text,
    -- A follower of all runs gets the events after the beginning of the first run in progress one
    -- by one, unless that run is the head alone.
    least($3::bigint, case
        when $4::boolean then (
            select pg_catalog.min(run.first_seq) operator(pg_catalog.-) 1
            from agui.run
            where run.thread_key operator(pg_catalog.=) agui.thread_key($5::pg_catalog.text, $1::pg_catalog.text) and run.status operator(pg_catalog.=) 'running'
            having pg_catalog.bool_or(exists (select from agui.run as later where later.thread_key operator(pg_catalog.=) run.thread_key and later.run_no operator(pg_catalog.>) run.run_no))
        )
    end),
    $6::pg_catalog.timestamptz, $7::bigint, $8::pg_catalog.text, $5::pg_catalog.text
) as item;

-- name: ClaimRun :one
select
    (claim).run_id::pg_catalog.text as run_id,
    coalesce((claim).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (claim).parallel::boolean as parallel,
    (claim).claimed_at::pg_catalog.timestamptz as claimed_at,
    (claim).alive_until::pg_catalog.timestamptz as alive_until
from agui.claim_run(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.json, $5::pg_catalog.text, $6::boolean, $7::pg_catalog.text
) as claim;

-- name: Claims :many
select
    (claim).run_id::pg_catalog.text as run_id,
    coalesce((claim).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (claim).parallel::boolean as parallel,
    (claim).claimed_at::pg_catalog.timestamptz as claimed_at,
    (claim).alive_until::pg_catalog.timestamptz as alive_until
from agui.claims($1::pg_catalog.text, $2::pg_catalog.text) as claim;

-- name: FindEnds :one
select agui_internal.find_ends()::int as runs;

-- name: KeepAlive :many
select
    (signal).call_no::int as call_no,
    (signal).status::pg_catalog.text as status,
    ((signal).stop_requested_at is not null)::boolean as stop_requested,
    coalesce((signal).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((signal).cut_off_reason, '')::pg_catalog.text as cut_off_reason
from agui.keep_alive($1::pg_catalog.text[], $2::pg_catalog.text[], $3::boolean, $4::pg_catalog.text[]) as signal;

-- name: LimitLockWait :exec
select pg_catalog.set_config('lock_timeout', '200ms', true);

-- name: NoteReap :exec
select agui_internal.note_uptime(is_writer => false), agui_internal.forget_ended_runs('reap'), agui_internal.forget_claims();

-- name: OpeningEvents :many
select agui_internal.json_unguard((part).event::pg_catalog.text)::pg_catalog.json as event
from agui.run
cross join lateral agui_internal.open_parts(run, $1::bigint) as part
where run.thread_key operator(pg_catalog.=) agui.thread_key($2::pg_catalog.text, $3::pg_catalog.text) and run.run_id operator(pg_catalog.=) $4::pg_catalog.text
order by (part).opened_at;

-- name: Poll :many
select
    (item).thread_no::int as thread_no,
    coalesce((item).run_id, '')::pg_catalog.text as run_id,
    coalesce((item).status, '')::pg_catalog.text as status,
    coalesce((item).first_seq, 0)::bigint as first_seq,
    coalesce((item).n, 0)::int as n,
    coalesce((item).recorded_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as recorded_at,
    coalesce((item).earlier_us, '{}')::int[] as earlier_us,
    (item).events::pg_catalog.json as events,
    coalesce((item).problem, '')::pg_catalog.text as problem
from agui.poll(
    $1::pg_catalog.text[], $2::bigint[],
    array(
        -- the zero time of Go: not known
        select case when after_time operator(pg_catalog.<>) '0001-01-01 00:00:00+00' then after_time end
        from pg_catalog.unnest($3::pg_catalog.timestamptz[]) with ordinality as item (after_time, thread_no)
        order by thread_no
    ),
    $4::int, $5::int, $6::pg_catalog.text[]
) as item;

-- name: ReapRun :one
select coalesce(agui_internal.reap_run($1::pg_catalog.uuid, $2::int), 0)::bigint as last_seq;

-- name: ReleaseClaim :one
select agui.release_claim($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text)::boolean as was_claimed;

-- name: RequestStop :one
select agui.request_stop($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text)::int as runs;

-- name: RunStatus :one
select
    (item).run_id::pg_catalog.text as run_id,
    coalesce((item).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (item).status::pg_catalog.text as status,
    (item).first_seq::bigint as first_seq,
    (item).last_seq::bigint as last_seq,
    (item).started_at::pg_catalog.timestamptz as started_at,
    -- The zero time of Go: not yet.
    coalesce((item).ended_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as ended_at,
    (item).alive_at::pg_catalog.timestamptz as alive_at,
    (item).is_stale::boolean as is_stale,
    (item).has_heartbeat::boolean as has_heartbeat,
    coalesce((item).stop_requested_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as stop_requested_at,
    coalesce((item).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((item).cut_off_reason, '')::pg_catalog.text as cut_off_reason,
    coalesce((item).error_code, '')::pg_catalog.text as error_code,
    coalesce((item).error_message, '')::pg_catalog.text as error_message
from agui.status($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) as item;

-- name: RunsInProgress :one
select
    coalesce((
        select batch.first_seq operator(pg_catalog.+) batch.n operator(pg_catalog.-) 1
        from agui.batch
        where batch.thread_key operator(pg_catalog.=) agui.thread_key($1::pg_catalog.text, $2::pg_catalog.text)
        order by batch.first_seq desc
        limit 1
    ), 0)::bigint as log_end,
    array(
        select run.run_id
        from agui.run
        where run.thread_key operator(pg_catalog.=) agui.thread_key($1::pg_catalog.text, $2::pg_catalog.text) and run.status operator(pg_catalog.=) 'running'
    )::pg_catalog.text[] as run_ids;

-- name: StaleRuns :many
select (run).thread_key::pg_catalog.uuid as thread_key, (run).run_no::int as run_no
from agui_internal.stale_runs() as run;

-- name: AttachmentData :one
select
    coalesce(item.message_id, '')::pg_catalog.text as message_id,
    coalesce(item.type, '')::pg_catalog.text as type,
    coalesce(item.mime_type, '')::pg_catalog.text as mime_type,
    coalesce(item.filename, '')::pg_catalog.text as filename,
    item.data::pg_catalog.bytea as data
from agui.attachment_data($1::pg_catalog.text, $2::int, $3::pg_catalog.text, $4::bigint, $5::pg_catalog.timestamptz, $6::pg_catalog.text) as item;

-- name: Attachments :many
select
    (item).n::int as n,
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).type, '')::pg_catalog.text as type,
    coalesce((item).mime_type, '')::pg_catalog.text as mime_type,
    coalesce((item).filename, '')::pg_catalog.text as filename,
    (item).bytes::bigint as bytes
from agui.attachments($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text) as item;

-- name: Batches :many
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).has_more::boolean as has_more
    from (
        select coalesce(pg_catalog.max(holder.first_seq), 1) as first_seq
        from agui.batch as holder
        where holder.thread_key operator(pg_catalog.=) agui.thread_key($1::pg_catalog.text, $2::pg_catalog.text)
            and holder.first_seq operator(pg_catalog.<=) (least($3::bigint, 9223372036854775806) operator(pg_catalog.+) 1)
    ) as beginning
    cross join lateral agui_internal.page_of_batches(
        agui.thread_key($1::pg_catalog.text, $2::pg_catalog.text), beginning.first_seq, 9223372036854775807, array[$4::int], $5::int, $6::bigint
    ) as span
)
select
    (batch).first_seq::bigint as first_seq,
    (batch).n::int as n,
    (batch).recorded_at::pg_catalog.timestamptz as recorded_at,
    (batch).events::pg_catalog.json as events,
    coalesce((batch).earlier_us, '{}')::int[] as earlier_us,
    (select page.has_more from page)::boolean as has_more
from agui_internal.batches_behind(agui.thread_key($1::pg_catalog.text, $2::pg_catalog.text), $3::bigint) as batch
where (batch).run_no operator(pg_catalog.=) $4::int
    and (batch).first_seq operator(pg_catalog.+) (batch).n operator(pg_catalog.-) 1 operator(pg_catalog.>) $3::bigint
    and (batch).first_seq operator(pg_catalog.<=) (select page.last_seq from page)
order by (batch).first_seq;

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
from agui.interrupts($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text) as item;

-- name: Messages :many
select
    coalesce((item).message_id, '')::pg_catalog.text as message_id,
    coalesce((item).role, '')::pg_catalog.text as role,
    (item).message::pg_catalog.json as message
from agui.messages($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text) as item;

-- name: PendingToolCalls :one
select agui.pending_tool_calls($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text)::pg_catalog.text[] as call_ids;

-- name: Replay :many
select item::pg_catalog.json as event
from agui.replay(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text, $6::pg_catalog.text
) as item;

-- name: Restore :one
select agui.restore($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text)::pg_catalog.json as restored;

-- name: State :one
select agui.state($1::pg_catalog.text, $2::pg_catalog.text, $3::bigint, $4::pg_catalog.timestamptz, $5::pg_catalog.text)::pg_catalog.json as state;

-- name: Verify :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui.verify($1::pg_catalog.text, $2::pg_catalog.text) as item;

-- name: NextToRepack :one
select (due).thread_key::pg_catalog.uuid as thread_key, (due).run_no::int as run_no
from agui_internal.next_to_repack($1::pg_catalog.uuid, $2::interval, $3::pg_catalog.uuid[], $4::int) as due
where (due).thread_key is not null;

-- name: RepackRun :one
select coalesce((piece).next_seq, 0)::bigint as next_seq, (piece).joined::int as joined, (piece).is_busy::boolean as is_busy
from agui_internal.repack_run($1::pg_catalog.uuid, $2::int, $3::bigint) as piece;

-- name: ReweighSnapshots :one
select agui_internal.prune_snapshots($1::pg_catalog.uuid)::int as dropped;

-- name: CurrentTransaction :one
select coalesce(pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text, '')::pg_catalog.text as transaction_id;

-- name: IsShown :one
select (
    case
        when $1::pg_catalog.text operator(pg_catalog.=) '' then true
        when cast($1::pg_catalog.text as pg_catalog.xid8) operator(pg_catalog.>=) pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) then false
        else coalesce(pg_catalog.pg_xact_status(cast($1::pg_catalog.text as pg_catalog.xid8)), '') operator(pg_catalog.<>) 'in progress'
    end
    and (
        $2::bigint operator(pg_catalog.=) 0
        or coalesce((
            select batch.first_seq operator(pg_catalog.+) batch.n operator(pg_catalog.-) 1
            from agui.batch
            where batch.thread_key operator(pg_catalog.=) agui.thread_key($3::pg_catalog.text, $4::pg_catalog.text)
            order by batch.first_seq desc
            limit 1
        ), 0) operator(pg_catalog.>=) $2::bigint
    )
)::boolean as is_shown;

-- name: ServerState :one
select
    pg_catalog.pg_is_in_recovery()::boolean as is_standby,
    pg_catalog.pg_postmaster_start_time()::pg_catalog.timestamptz as started_at,
    (select database.oid from pg_catalog.pg_database as database where database.datname operator(pg_catalog.=) pg_catalog.current_database())::bigint as database_oid,
    pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text::bigint as next_transaction;

-- name: CheckpointLineage :many
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::pg_catalog.text as namespace,
    (checkpoint).checkpoint_id::pg_catalog.text as checkpoint_id, coalesce((checkpoint).parent_id, '')::pg_catalog.text as parent_id,
    coalesce((checkpoint).run_id, '')::pg_catalog.text as run_id, (checkpoint).saved_at::pg_catalog.timestamptz as saved_at, (checkpoint).document::pg_catalog.json as document
from agui.checkpoint_lineage($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text) as checkpoint;

-- name: Checkpoints :many
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::pg_catalog.text as namespace,
    (checkpoint).checkpoint_id::pg_catalog.text as checkpoint_id, coalesce((checkpoint).parent_id, '')::pg_catalog.text as parent_id,
    coalesce((checkpoint).run_id, '')::pg_catalog.text as run_id, (checkpoint).saved_at::pg_catalog.timestamptz as saved_at, (checkpoint).document::pg_catalog.json as document
from agui.checkpoints($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) as checkpoint;

-- name: LoadCheckpoint :many
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::pg_catalog.text as namespace,
    (checkpoint).checkpoint_id::pg_catalog.text as checkpoint_id, coalesce((checkpoint).parent_id, '')::pg_catalog.text as parent_id,
    coalesce((checkpoint).run_id, '')::pg_catalog.text as run_id, (checkpoint).saved_at::pg_catalog.timestamptz as saved_at, (checkpoint).document::pg_catalog.json as document
from agui.load_checkpoint(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text
) as checkpoint;

-- name: LoadSession :one
select agui.load_session($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text)::pg_catalog.json as session;

-- name: LoadSessionState :many
select
    (state).key::pg_catalog.text as key, coalesce((state).run_id, '')::pg_catalog.text as run_id, (state).version::bigint as version,
    (state).saved_at::pg_catalog.timestamptz as saved_at, (state).document::pg_catalog.json as document
from agui.load_session_state(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::bigint, $5::pg_catalog.text
) as state;

-- name: LoadSessions :one
select agui.load_sessions(
    $1::pg_catalog.text[],
    array(
        select case when item.run_id operator(pg_catalog.<>) '' then item.run_id end
        from pg_catalog.unnest($2::pg_catalog.text[]) with ordinality as item (run_id, place)
        order by item.place
    ),
    $3::pg_catalog.text
)::pg_catalog.json as sessions;

-- name: RemoveSessionState :one
select agui.remove_session_state(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::bigint, $5::boolean, $6::pg_catalog.text
)::bigint as version;

-- name: SaveCheckpoint :one
select agui.save_checkpoint(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.json, $4::pg_catalog.text, $5::pg_catalog.text, $6::pg_catalog.text, $7::pg_catalog.text
)::bigint as checkpoint_no;

-- name: SaveSession :one
select agui.save_session($1::pg_catalog.json, $2::pg_catalog.text)::pg_catalog.json as versions;

-- name: SaveSessionState :one
select agui.save_session_state(
    $1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.json, $4::pg_catalog.text, $5::bigint, $6::boolean, $7::pg_catalog.text
)::bigint as version;

-- name: SaveSessions :one
select agui.save_sessions($1::pg_catalog.json, $2::pg_catalog.text)::pg_catalog.json as versions;

-- name: SessionStates :many
select
    (state).key::pg_catalog.text as key, coalesce((state).run_id, '')::pg_catalog.text as run_id, (state).version::bigint as version,
    (state).saved_at::pg_catalog.timestamptz as saved_at, (state).document::pg_catalog.json as document
from agui.session_states($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) as state;

-- name: SessionVersions :many
select
    (state).key::pg_catalog.text as key, coalesce((state).run_id, '')::pg_catalog.text as run_id, (state).version::bigint as version,
    (state).saved_at::pg_catalog.timestamptz as saved_at, (state).document::pg_catalog.json as document
from agui.session_versions($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text) as state;

-- name: Lag :one
select
    runs_to_compact::bigint, coalesce(extract(epoch from compaction_lag), 0)::pg_catalog.float8 as compaction_lag,
    runs_to_repack::bigint, coalesce(extract(epoch from repack_lag), 0)::pg_catalog.float8 as repack_lag,
    running_runs::bigint, stale_runs::bigint, coalesce(extract(epoch from oldest_sign_of_life), 0)::pg_catalog.float8 as oldest_sign_of_life,
    quarantined_runs::bigint, is_exact::boolean
from agui.lag($1::boolean);

-- name: Stats :one
select
    threads::bigint, runs::bigint, running_runs::bigint, finished_runs::bigint, interrupted_runs::bigint, cancelled_runs::bigint,
    failed_runs::bigint, cut_off_runs::bigint, events::bigint,
    repacked_runs::bigint, compacted_log_bytes::bigint, coalesce(log_disk_bytes, 0)::bigint as log_disk_bytes,
    coalesce(snapshot_disk_bytes, 0)::bigint as snapshot_disk_bytes, coalesce(tree_disk_bytes, 0)::bigint as tree_disk_bytes,
    coalesce(session_disk_bytes, 0)::bigint as session_disk_bytes, erased_threads::bigint, is_exact::boolean
from agui.stats($1::boolean);

-- name: FillTitle :exec
select agui_internal.fill_title($1::pg_catalog.uuid);

-- name: GetThread :one
select
    (thread).thread_id::pg_catalog.text as thread_id,
    coalesce((thread).title, '')::pg_catalog.text as title,
    coalesce((thread).agent, '')::pg_catalog.text as agent,
    (thread).metadata::pg_catalog.json as metadata,
    (thread).archived::boolean as archived,
    (thread).created_at::pg_catalog.timestamptz as created_at,
    (thread).active_at::pg_catalog.timestamptz as active_at,
    coalesce((thread).head_run_id, '')::pg_catalog.text as head_run_id,
    coalesce((thread).status, '')::pg_catalog.text as status,
    (thread).is_stale::boolean as is_stale,
    (thread).runs::int as runs,
    (thread).branches::int as branches,
    (thread).cursor::pg_catalog.text as cursor,
    coalesce((thread).error_code, '')::pg_catalog.text as error_code,
    coalesce((thread).error_message, '')::pg_catalog.text as error_message,
    coalesce((thread).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((thread).cut_off_reason, '')::pg_catalog.text as cut_off_reason
from agui.get_thread($1::pg_catalog.text, $2::pg_catalog.text) as thread;

-- name: ListRuns :many
select
    (run).thread_id::pg_catalog.text as thread_id,
    (run).run_id::pg_catalog.text as run_id,
    coalesce((run).parent_run_id, '')::pg_catalog.text as parent_run_id,
    (run).status::pg_catalog.text as status,
    coalesce((run).title, '')::pg_catalog.text as title,
    coalesce((run).agent, '')::pg_catalog.text as agent,
    (run).first_seq::bigint as first_seq,
    (run).last_seq::bigint as last_seq,
    (run).started_at::pg_catalog.timestamptz as started_at,
    (run).ended_at::pg_catalog.timestamptz as ended_at,
    coalesce((run).error_code, '')::pg_catalog.text as error_code,
    coalesce((run).error_message, '')::pg_catalog.text as error_message,
    coalesce((run).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((run).cut_off_reason, '')::pg_catalog.text as cut_off_reason,
    (run).cursor::pg_catalog.text as cursor
from agui.list_runs(
    $1::pg_catalog.text[],
    $2::pg_catalog.timestamptz,
    $3::int,
    $4::pg_catalog.text,
    $5::pg_catalog.text
) as run;

-- name: SetThread :one
select
    (thread).thread_id::pg_catalog.text as thread_id,
    coalesce((thread).title, '')::pg_catalog.text as title,
    coalesce((thread).agent, '')::pg_catalog.text as agent,
    (thread).metadata::pg_catalog.json as metadata,
    (thread).archived::boolean as archived,
    (thread).created_at::pg_catalog.timestamptz as created_at,
    (thread).active_at::pg_catalog.timestamptz as active_at,
    coalesce((thread).head_run_id, '')::pg_catalog.text as head_run_id,
    coalesce((thread).status, '')::pg_catalog.text as status,
    (thread).is_stale::boolean as is_stale,
    (thread).runs::int as runs,
    (thread).branches::int as branches,
    (thread).cursor::pg_catalog.text as cursor,
    coalesce((thread).error_code, '')::pg_catalog.text as error_code,
    coalesce((thread).error_message, '')::pg_catalog.text as error_message,
    coalesce((thread).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((thread).cut_off_reason, '')::pg_catalog.text as cut_off_reason
from agui.set_thread(
    $1::pg_catalog.text,
    $2::pg_catalog.text,
    $3::pg_catalog.text,
    $4::boolean,
    $5::pg_catalog.jsonb,
    $6::boolean,
    $7::pg_catalog.text
) as thread;

-- name: ThreadIDs :many
select thread.thread_key, thread.thread_id
from agui.thread
where thread.scope operator(pg_catalog.=) $1::pg_catalog.text
    and thread.thread_key operator(pg_catalog.>) $2::pg_catalog.uuid
    and thread.thread_key operator(pg_catalog.>=) agui_internal.first_key($1::pg_catalog.text)
    and thread.thread_key operator(pg_catalog.<=) agui_internal.last_key($1::pg_catalog.text)
order by thread.thread_key
limit $3::int;

-- name: ThreadPage :many
select
    coalesce((thread).thread_id, '')::pg_catalog.text as thread_id,
    coalesce((thread).title, '')::pg_catalog.text as title,
    coalesce((thread).agent, '')::pg_catalog.text as agent,
    (thread).metadata::pg_catalog.json as metadata,
    coalesce((thread).archived, false)::boolean as archived,
    coalesce((thread).created_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as created_at,
    coalesce((thread).active_at, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as active_at,
    coalesce((thread).head_run_id, '')::pg_catalog.text as head_run_id,
    coalesce((thread).status, '')::pg_catalog.text as status,
    coalesce((thread).is_stale, false)::boolean as is_stale,
    coalesce((thread).runs, 0)::int as runs,
    coalesce((thread).branches, 0)::int as branches,
    coalesce((thread).cursor, '')::pg_catalog.text as cursor,
    coalesce((thread).error_code, '')::pg_catalog.text as error_code,
    coalesce((thread).error_message, '')::pg_catalog.text as error_message,
    coalesce((thread).stop_reason, '')::pg_catalog.text as stop_reason,
    coalesce((thread).cut_off_reason, '')::pg_catalog.text as cut_off_reason,
    coalesce(page.next_cursor, '')::pg_catalog.text as next_cursor,
    coalesce(page.searched_to, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as searched_to
from agui.thread_page(
    $1::pg_catalog.text,
    $2::boolean,
    $3::pg_catalog.text,
    $4::pg_catalog.timestamptz,
    $5::pg_catalog.text,
    $6::boolean,
    $7::pg_catalog.jsonb,
    $8::int,
    $9::pg_catalog.text,
    $10::pg_catalog.text
) as page
left join lateral pg_catalog.unnest(page.threads) as thread on true;

-- name: Branches :many
select
    (branch).run_id::pg_catalog.text as run_id,
    (branch).runs::int as runs,
    coalesce((branch).forked_from, '')::pg_catalog.text as forked_from,
    (branch).status::pg_catalog.text as status,
    coalesce((branch).last_seq, 0)::bigint as last_seq,
    (branch).is_head::boolean as is_head
from agui.branches($1::pg_catalog.text, $2::pg_catalog.text) as branch;

-- name: Head :one
select agui.head($1::pg_catalog.text, $2::pg_catalog.text)::pg_catalog.text as run_id;

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
from agui.lineage($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) as run;

-- name: MergeBase :one
select coalesce(agui.merge_base($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text), '')::pg_catalog.text as run_id;

-- name: MessageOrigin :many
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
from agui.message_origin($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text) as run;

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
from agui.runs($1::pg_catalog.text, $2::pg_catalog.text) as run;

-- name: MessageBodies :many
select message.message_no, (case when agui_internal.fits(message.body, $1::bigint) then message.body end)::pg_catalog.json as body
from pg_catalog.unnest($2::int[]) as requested (message_no)
join agui.message
    on message.thread_key operator(pg_catalog.=) $3::pg_catalog.uuid and message.message_no operator(pg_catalog.=) requested.message_no;

-- name: OrphanedKeys :many
select key::pg_catalog.uuid as thread_key from agui_internal.orphaned_keys($1::pg_catalog.text) as key;

-- name: RandomThreads :many
select thread.thread_key, thread.scope, thread.thread_id
from agui.thread
where ($1::pg_catalog.text is null or thread.scope operator(pg_catalog.=) $1::pg_catalog.text)
    and agui_internal.has_activity_since(thread.thread_key, $2::pg_catalog.timestamptz)
order by pg_catalog.random()
limit $3::int;

-- name: RebuildSnapshots :one
select agui.rebuild_snapshots($1::pg_catalog.text, $2::pg_catalog.text)::bigint as snapshots;

-- name: RunsToVerify :many
select run.run_no, run.run_id, run.parent_no, run.status, run.first_seq, run.last_seq, snapshot.through_seq
from agui.run
left join agui.snapshot
    on snapshot.thread_key operator(pg_catalog.=) run.thread_key and snapshot.run_no operator(pg_catalog.=) run.run_no
where run.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid
order by run.run_no;

-- name: SnapshotToVerify :one
select
    array(
        select coalesce(pg_catalog.lower(part.message_nos), 0)
        from pg_catalog.unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        order by part.position
    )::int[] as lows,
    array(
        select coalesce(pg_catalog.upper(part.message_nos), 0)
        from pg_catalog.unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
        order by part.position
    )::int[] as highs,
    (case when agui_internal.fits(snapshot.state, $1::bigint) then snapshot.state end)::pg_catalog.json as state,
    snapshot.interrupts, snapshot.lanes
from agui.snapshot
where snapshot.thread_key operator(pg_catalog.=) $2::pg_catalog.uuid and snapshot.run_no operator(pg_catalog.=) $3::int;

-- name: ThreadKeys :many
select key::pg_catalog.uuid as thread_key from agui_internal.thread_keys($1::pg_catalog.text, $2::pg_catalog.text) as key;

-- name: ThreadSize :one
select
    (select pg_catalog.count(*) from agui.run where run.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid)::int as runs,
    (select coalesce(pg_catalog.sum(batch.n), 0) from agui.batch where batch.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid)::bigint as events,
    (select pg_catalog.count(*) from agui.snapshot where snapshot.thread_key operator(pg_catalog.=) $1::pg_catalog.uuid)::int as snapshots;

-- name: ThreadsToVerify :many
select thread.thread_key, thread.scope, thread.thread_id
from agui.thread
where thread.thread_key operator(pg_catalog.>) $1::pg_catalog.uuid
    and ($2::pg_catalog.text is null or thread.scope operator(pg_catalog.=) $2::pg_catalog.text)
    and ($3::pg_catalog.float8 is null or pg_catalog.random() operator(pg_catalog.<) $3::pg_catalog.float8)
    and agui_internal.has_activity_since(thread.thread_key, $4::pg_catalog.timestamptz)
order by thread.thread_key
limit $5::int;

-- name: VerifyLog :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui_internal.verify_log($1::pg_catalog.uuid) as item;

-- name: VerifyReferences :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui_internal.verify_references($1::pg_catalog.uuid) as item;

-- name: VerifySnapshots :many
select coalesce((item).run_id, '')::pg_catalog.text as run_id, (item).problem::pg_catalog.text as problem, (item).severity::pg_catalog.text as severity
from agui_internal.verify_snapshots($1::pg_catalog.uuid) as item;

