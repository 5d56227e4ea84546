-- name: TimeAgo :one
-- The time that long ago by the clock of the server, which sets the times of runs.
select (clock_timestamp() - @duration::interval)::timestamptz as at;

-- name: CountRunsToCompact :one
select count(*)
from agui.run
where run.log_bytes is null and run.status <> 'running' and run.ended_at <= coalesce(sqlc.narg(due_by)::timestamptz, 'infinity');

-- name: BeginStep :exec
select agui_internal.begin_step();

-- name: ChooseToCompact :one
-- No row: there is none. run_no is 0 for all runs of a thread. place is in the year 1 for a run
-- that is not from the queue.
select (next).thread_key::uuid as thread_key, (next).run_nos[1]::int as run_no, greatest((next).place, '0001-01-01 00:00:00+00')::timestamptz as place
from unnest(agui_internal.choose_to_compact(
    sqlc.narg(near)::uuid, coalesce(sqlc.narg(from_at)::timestamptz, '-infinity'), coalesce(sqlc.narg(due_by)::timestamptz, 'infinity'),
    @passed_over::uuid[], true, @after_no::int
)) as next;

-- name: ChooseThreadToCompact :one
-- The same for a thread without notes. No row: there is none behind that place in the queue.
select (next).thread_key::uuid as thread_key, (next).run_nos[1]::int as run_no, (next).place::timestamptz as place
from agui_internal.choose_thread_to_compact(
    coalesce(sqlc.narg(from_at)::timestamptz, '-infinity'), coalesce(sqlc.narg(due_by)::timestamptz, 'infinity'), @passed_over::uuid[]
) as next
where (next).thread_key is not null;

-- name: HoldThread :one
-- False: another transaction holds it, or it is gone.
select agui_internal.hold_thread(@thread_key::uuid)::boolean as is_held;

-- name: NoteSuccess :exec
select agui_internal.note_success(@job::text, @thread_key::uuid, array[@run_no::int]);

-- name: NoteFailure :one
select agui_internal.note_failure(@job::text, @thread_key::uuid, sqlc.narg(code)::text, @error::text, array[@run_no::int])::boolean as is_counted;

-- name: NoteAttempt :exec
select agui_internal.note_attempt(@job::text, @thread_key::uuid, array[@run_no::int]);

-- name: TakeBackAttempt :exec
select agui_internal.take_back_attempt(@job::text, @thread_key::uuid, array[@run_no::int]);

-- name: Quarantined :one
select count(*) from agui.quarantine where quarantine.job = @job::text;

-- name: Retry :one
select agui.retry(@job::text)::bigint as runs;

-- name: RunsToCompact :many
-- The runs of a thread that are due: those behind after_no, or (run_no not 0) that one. With each,
-- whether it has an input beside its events, and a snapshot, made while it was in progress. With
-- all of them, the tip of the thread, the youngest run that has ended; the one before (0: none);
-- and the number of the last message version. Compaction uses the text of this query, to send it as it begins.
select
    due.run_no, due.parent_no, due.first_seq, due.last_seq::bigint as last_seq,
    agui_internal.input_bytes(due.thread_key, due.run_no)::bigint as input_bytes,
    due.has_input::boolean as has_input,
    due.has_snapshot::boolean as has_snapshot,
    (
        select run.run_no
        from agui.run
        where run.thread_key = @thread_key::uuid and run.status <> 'running'
        order by run.run_no desc
        limit 1
    )::int as tip,
    (case when exists (select from agui.snapshot where snapshot.thread_key = @thread_key::uuid)
        then coalesce(agui_internal.previous_tip(@thread_key::uuid), 0) else 0 end)::int as previous_tip,
    coalesce((
        select message.message_no from agui.message_version as message where message.thread_key = @thread_key::uuid order by message.message_no desc limit 1
    ), 0)::int as last_message_no
from (
    select
        run.thread_key, run.run_no, run.parent_no, run.first_seq, run.last_seq,
        exists (select from agui.run_input where run_input.thread_key = run.thread_key and run_input.run_no = run.run_no) as has_input,
        exists (select from agui.snapshot where snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no) as has_snapshot
    from agui.run
    where run.thread_key = @thread_key::uuid
        and run.log_bytes is null
        and run.status <> 'running'
        and run.ended_at <= coalesce(sqlc.narg(due_by)::timestamptz, 'infinity')
        and run.run_no > case when @run_no::int = 0 then @after_no::int else @run_no::int - 1 end
        and run.run_no <= case when @run_no::int = 0 then 2147483647 else @run_no::int end
    order by run.run_no
    limit @max_runs::int
) as due
order by due.run_no;

-- name: DropSnapshots :exec
-- Drops the snapshots of runs that were made while the runs were in progress.
select agui_internal.drop_snapshots(@thread_key::uuid, @run_nos::int[]);

-- name: FoldBase :one
select coalesce(agui_internal.fold_base(@thread_key::uuid, @run_no::int), 0)::int as run_no;

-- name: LogBytesSince :one
select agui_internal.log_bytes_since(@thread_key::uuid, @run_no::int, @base_no::int)::bigint as log_bytes;

-- name: SnapshotAt :one
-- Without a state of more than most_bytes.
select
    snapshot.through_seq,
    (case when agui_internal.fits(snapshot.state, @most_bytes::bigint) then snapshot.state end)::json as state,
    snapshot.interrupts, snapshot.lanes
from agui.snapshot
where snapshot.thread_key = @thread_key::uuid and snapshot.run_no = @run_no::int;

-- name: SnapshotMessages :many
-- Without bodies of more than most_bytes.
select message.message_no, (case when agui_internal.fits(message.body, @most_bytes::bigint) then message.body end)::json as body
from agui.snapshot
cross join unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
-- The offset makes this one look-up for each range, as in agui_internal.load_snapshot.
cross join lateral (
    select stored.message_no, stored.body
    from agui.message as stored
    where stored.thread_key = snapshot.thread_key
        and stored.message_no >= lower(part.message_nos) and stored.message_no < upper(part.message_nos)
    offset 0
) as message
where snapshot.thread_key = @thread_key::uuid and snapshot.run_no = @run_no::int
order by part.position, message.message_no;

-- name: LineageBehind :many
-- The runs of a lineage from the run base_no (0: from the root) to the run run_no, root first.
select (ancestor).run_no::int as run_no, (ancestor).first_seq::bigint as first_seq, (ancestor).last_seq::bigint as last_seq
from agui_internal.lineage_behind(@thread_key::uuid, @run_no::int, @base_no::int) as ancestor
order by (ancestor).run_no;

-- name: InputPlaces :many
-- Where the inputs stored beside the events of runs take effect, see agui_internal.input_places.
select
    (place).run_no::int as run_no, (place).seq::bigint as seq, (place).is_start::boolean as is_start,
    exists (
        select
        from agui.run_input as stored
        where stored.thread_key = @thread_key::uuid and stored.run_no = (place).run_no and stored.skeleton is not null and stored.split_at is not null
    )::boolean as in_parts
from agui_internal.input_places(@thread_key::uuid, @run_nos::int[], @through_seqs::bigint[]) as place;

-- name: InputsInParts :many
-- Inputs that are stored in parts: without the messages of which the numbers of the parts follow.
select
    stored.run_no,
    agui_internal.joined_input(stored.thread_key, stored.skeleton, agui_internal.with_messages(stored.sections, null))::json as rest,
    coalesce(octet_length(section.separator), 0)::int as separator_bytes,
    (case when section.part_nos is not null then array(
        select number.part_no
        from unnest(section.part_nos) with ordinality as range (part_nos, place)
        cross join lateral generate_series(lower(range.part_nos), upper(range.part_nos) - 1) as number (part_no)
        order by range.place, number.part_no
    ) end)::int[] as part_nos
from agui.run_input as stored
left join lateral jsonb_to_recordset(stored.sections) as section (kind text, separator text, part_nos int4range[])
    on section.kind = 'message'
where stored.thread_key = @thread_key::uuid and stored.run_no = any (@run_nos::int[])
    and stored.skeleton is not null and stored.split_at is not null;

-- name: InputMessages :many
-- Messages of inputs by the numbers of their parts, with their sizes as folds count them; without the
-- text of those with a known id. An id with a backslash is ambiguous, and counts as none.
select
    part.part_no,
    coalesce(strpos(part.message_id, '\') = 0, false)::boolean as has_id,
    coalesce(part.message_id, '')::text as message_id,
    part.bytes,
    (case when (part.message_id = any (@known_ids::text[])) is not true then part.body end)::json as body
from agui.input_part as part
where part.thread_key = @thread_key::uuid and part.kind = 'message' and part.part_no = any (@part_nos::int[]);

-- name: BatchesBetween :many
-- A page of the batches of a thread in the order of the log, with their stored sizes, and with the
-- input of the run if it is not split and takes effect at one of their events (input_seqs). Its text is
-- limited to page_bytes. A larger batch comes alone, and without events if it has more than most_bytes.
-- Compaction uses the text of this query, to send it together with its writes.
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).bytes::bigint as bytes, (span).has_more::boolean as has_more
    from agui_internal.page_of_batches(
        @thread_key::uuid, @from_seq::bigint, @through_seq::bigint, @run_nos::int[], @page::int, @page_bytes::bigint, @input_seqs::bigint[]
    ) as span
)
select
    batch.first_seq, batch.n, batch.run_no,
    (
        select run.run_id
        from agui.run as run
        where run.thread_key = batch.thread_key and run.run_no = batch.run_no
    )::text as run_id,
    (case when (select page.bytes from page) <= @most_bytes::bigint then batch.events end)::json as events,
    agui_internal.stored_bytes(batch.events, batch.earlier_us)::bigint as stored_bytes,
    (
        select beside.input
        from unnest(@input_seqs::bigint[]) as place (seq)
        join agui.input as beside
            on beside.thread_key = batch.thread_key and beside.run_no = batch.run_no
        where place.seq >= batch.first_seq and place.seq < (batch.first_seq + batch.n)
            and (select page.bytes from page) <= @most_bytes::bigint
    )::json as input,
    (select page.bytes from page)::bigint as page_bytes,
    (select page.has_more from page)::boolean as has_more
from agui.batch
where batch.thread_key = @thread_key::uuid
    and batch.first_seq >= @from_seq::bigint and batch.first_seq <= (select page.last_seq from page)
    and batch.run_no = any (@run_nos::int[])
order by batch.first_seq;

-- name: AddMessages :exec
select agui_internal.add_messages(
    @thread_key::uuid, @message_nos::int[], @message_ids::text[], @roles::text[], @bodies::text[], @print::boolean[]
);

-- name: AddSnapshot :exec
select agui_internal.add_snapshot(
    @thread_key::uuid, @run_no::int, @through_seq::bigint, @lows::int[], @highs::int[], @state::text, @print_state::boolean,
    @interrupts::json, sqlc.narg(lanes)::json, @rules::int
);

-- name: RefuseDamagedLog :exec
select agui_internal.refuse_damaged_log(@thread_key::uuid, run_no) from unnest(@run_nos::int[]) as run_no;

-- name: MarkCompacted :exec
-- Except runs to which their writers appended events after the end in the meantime: those are
-- compacted a second time.
select agui_internal.mark_compacted(@thread_key::uuid, @run_nos::int[], @last_seqs::bigint[], @ns::bigint[], @log_bytes::bigint[], @batches::bigint[]);

-- name: DropNeedlessSnapshot :one
select agui_internal.drop_needless_snapshot(@thread_key::uuid, @run_no::int)::boolean as dropped;

-- name: CompactRunning :exec
call agui.compact_running(@every_events::int, sqlc.narg(max_time)::interval);

-- name: SplitInputs :exec
call agui_internal.split_inputs(sqlc.narg(max_time)::interval);

-- name: Settle :one
select agui.settle(@thread_id::text, scope => @scope::text)::boolean as is_done;
