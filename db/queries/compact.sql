-- name: TimeAgo :one
-- The time that long ago by the clock of the server, which sets the times of runs.
select (pg_catalog.clock_timestamp() operator(pg_catalog.-) @duration::interval)::pg_catalog.timestamptz as at;

-- name: CountRunsToCompact :one
select pg_catalog.count(*)
from agui.run
where run.log_bytes is null and run.status operator(pg_catalog.<>) 'running' and run.ended_at operator(pg_catalog.<=) coalesce(sqlc.narg(due_by)::pg_catalog.timestamptz, 'infinity');

-- name: BeginStep :exec
select agui_internal.begin_step();

-- name: ChooseToCompact :one
-- No row: there is none. run_no is 0 for all runs of a thread. place is in the year 1 for a run
-- that is not from the queue.
select (next).thread_key::pg_catalog.uuid as thread_key, (next).run_nos[1]::int as run_no, greatest((next).place, '0001-01-01 00:00:00+00')::pg_catalog.timestamptz as place
from pg_catalog.unnest(agui_internal.choose_to_compact(
    sqlc.narg(near)::pg_catalog.uuid, coalesce(sqlc.narg(from_at)::pg_catalog.timestamptz, '-infinity'), coalesce(sqlc.narg(due_by)::pg_catalog.timestamptz, 'infinity'),
    @passed_over::pg_catalog.uuid[], true, @after_no::int
)) as next;

-- name: ChooseThreadToCompact :one
-- The same for a thread without notes. No row: there is none behind that place in the queue.
select (next).thread_key::pg_catalog.uuid as thread_key, (next).run_nos[1]::int as run_no, (next).place::pg_catalog.timestamptz as place
from agui_internal.choose_thread_to_compact(
    coalesce(sqlc.narg(from_at)::pg_catalog.timestamptz, '-infinity'), coalesce(sqlc.narg(due_by)::pg_catalog.timestamptz, 'infinity'), @passed_over::pg_catalog.uuid[]
) as next
where (next).thread_key is not null;

-- name: HoldThread :one
-- False: another transaction holds it, or it is gone.
select agui_internal.hold_thread(@thread_key::pg_catalog.uuid)::boolean as is_held;

-- name: NoteSuccess :exec
select agui_internal.note_success(@job::pg_catalog.text, @thread_key::pg_catalog.uuid, array[@run_no::int]);

-- name: NoteFailure :one
select agui_internal.note_failure(@job::pg_catalog.text, @thread_key::pg_catalog.uuid, sqlc.narg(code)::pg_catalog.text, @error::pg_catalog.text, array[@run_no::int])::boolean as is_counted;

-- name: NoteAttempt :exec
select agui_internal.note_attempt(@job::pg_catalog.text, @thread_key::pg_catalog.uuid, array[@run_no::int]);

-- name: TakeBackAttempt :exec
select agui_internal.take_back_attempt(@job::pg_catalog.text, @thread_key::pg_catalog.uuid, array[@run_no::int]);

-- name: Quarantined :one
select pg_catalog.count(*) from agui.quarantine where quarantine.job operator(pg_catalog.=) @job::pg_catalog.text;

-- name: Retry :one
select agui.retry(@job::pg_catalog.text)::bigint as runs;

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
        where run.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and run.status operator(pg_catalog.<>) 'running'
        order by run.run_no desc
        limit 1
    )::int as tip,
    (case when exists (select from agui.snapshot where snapshot.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid)
        then coalesce(agui_internal.previous_tip(@thread_key::pg_catalog.uuid), 0) else 0 end)::int as previous_tip,
    coalesce((
        select message.message_no from agui.message_version as message where message.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid order by message.message_no desc limit 1
    ), 0)::int as last_message_no
from (
    select
        run.thread_key, run.run_no, run.parent_no, run.first_seq, run.last_seq,
        exists (select from agui.run_input where run_input.thread_key operator(pg_catalog.=) run.thread_key and run_input.run_no operator(pg_catalog.=) run.run_no) as has_input,
        exists (select from agui.snapshot where snapshot.thread_key operator(pg_catalog.=) run.thread_key and snapshot.run_no operator(pg_catalog.=) run.run_no) as has_snapshot
    from agui.run
    where run.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid
        and run.log_bytes is null
        and run.status operator(pg_catalog.<>) 'running'
        and run.ended_at operator(pg_catalog.<=) coalesce(sqlc.narg(due_by)::pg_catalog.timestamptz, 'infinity')
        and run.run_no operator(pg_catalog.>) case when @run_no::int operator(pg_catalog.=) 0 then @after_no::int else @run_no::int operator(pg_catalog.-) 1 end
        and run.run_no operator(pg_catalog.<=) case when @run_no::int operator(pg_catalog.=) 0 then 2147483647 else @run_no::int end
    order by run.run_no
    limit @max_runs::int
) as due
order by due.run_no;

-- name: DropSnapshots :exec
-- Drops the snapshots of runs that were made while the runs were in progress.
select agui_internal.drop_snapshots(@thread_key::pg_catalog.uuid, @run_nos::int[]);

-- name: FoldBase :one
select coalesce(agui_internal.fold_base(@thread_key::pg_catalog.uuid, @run_no::int), 0)::int as run_no;

-- name: LogBytesSince :one
select agui_internal.log_bytes_since(@thread_key::pg_catalog.uuid, @run_no::int, @base_no::int)::bigint as log_bytes;

-- name: SnapshotAt :one
-- Without a state of more than most_bytes.
select
    snapshot.through_seq,
    (case when agui_internal.fits(snapshot.state, @most_bytes::bigint) then snapshot.state end)::pg_catalog.json as state,
    snapshot.interrupts, snapshot.lanes
from agui.snapshot
where snapshot.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and snapshot.run_no operator(pg_catalog.=) @run_no::int;

-- name: SnapshotMessages :many
-- Without bodies of more than most_bytes.
select message.message_no, (case when agui_internal.fits(message.body, @most_bytes::bigint) then message.body end)::pg_catalog.json as body
from agui.snapshot
cross join pg_catalog.unnest(snapshot.message_nos) with ordinality as part (message_nos, position)
-- The offset makes this one look-up for each range, as in agui_internal.load_snapshot.
cross join lateral (
    select stored.message_no, stored.body
    from agui.message as stored
    where stored.thread_key operator(pg_catalog.=) snapshot.thread_key
        and stored.message_no operator(pg_catalog.>=) pg_catalog.lower(part.message_nos) and stored.message_no operator(pg_catalog.<) pg_catalog.upper(part.message_nos)
    offset 0
) as message
where snapshot.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and snapshot.run_no operator(pg_catalog.=) @run_no::int
order by part.position, message.message_no;

-- name: LineageBehind :many
-- The runs of a lineage from the run base_no (0: from the root) to the run run_no, root first.
select (ancestor).run_no::int as run_no, (ancestor).first_seq::bigint as first_seq, (ancestor).last_seq::bigint as last_seq
from agui_internal.lineage_behind(@thread_key::pg_catalog.uuid, @run_no::int, @base_no::int) as ancestor
order by (ancestor).run_no;

-- name: InputPlaces :many
-- Where the inputs stored beside the events of runs take effect, see agui_internal.input_places.
select
    (place).run_no::int as run_no, (place).seq::bigint as seq, (place).is_start::boolean as is_start,
    exists (
        select
        from agui.run_input as stored
        where stored.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and stored.run_no operator(pg_catalog.=) (place).run_no and stored.skeleton is not null
    )::boolean as in_parts
from agui_internal.input_places(@thread_key::pg_catalog.uuid, @run_nos::int[], @through_seqs::bigint[]) as place;

-- name: InputsInParts :many
-- Inputs that are stored in parts: without the messages of which the numbers of the parts follow.
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
where stored.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and stored.run_no operator(pg_catalog.=) any (@run_nos::int[]) and stored.skeleton is not null;

-- name: InputMessages :many
-- Messages of inputs by the numbers of their parts, with their sizes as folds count them; without the
-- text of those with a known id. An id with a backslash is ambiguous, and counts as none.
select
    part.part_no,
    coalesce(pg_catalog.strpos(part.message_id, '\') operator(pg_catalog.=) 0, false)::boolean as has_id,
    coalesce(part.message_id, '')::pg_catalog.text as message_id,
    part.bytes,
    (case when (part.message_id operator(pg_catalog.=) any (@known_ids::pg_catalog.text[])) is not true then part.body end)::pg_catalog.json as body
from agui.input_part as part
where part.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid and part.kind operator(pg_catalog.=) 'message' and part.part_no operator(pg_catalog.=) any (@part_nos::int[]);

-- name: BatchesBetween :many
-- A page of the batches of a thread in the order of the log, with their stored sizes, and with the
-- input of the run if it is stored whole and takes effect at one of their events (input_seqs). Its text is limited to
-- page_bytes. A larger batch comes alone, and without events if it has more than most_bytes.
-- Compaction uses the text of this query, to send it together with its writes.
with page as materialized (
    select (span).last_seq::bigint as last_seq, (span).bytes::bigint as bytes, (span).has_more::boolean as has_more
    from agui_internal.page_of_batches(
        @thread_key::pg_catalog.uuid, @from_seq::bigint, @through_seq::bigint, @run_nos::int[], @page::int, @page_bytes::bigint, @input_seqs::bigint[]
    ) as span
)
select
    batch.first_seq, batch.n, batch.run_no,
    (
        select run.run_id
        from agui.run as run
        where run.thread_key operator(pg_catalog.=) batch.thread_key and run.run_no operator(pg_catalog.=) batch.run_no
    )::pg_catalog.text as run_id,
    (case when (select page.bytes from page) operator(pg_catalog.<=) @most_bytes::bigint then batch.events end)::pg_catalog.json as events,
    agui_internal.stored_bytes(batch.events, batch.earlier_us)::bigint as stored_bytes,
    (
        select beside.input
        from pg_catalog.unnest(@input_seqs::bigint[]) as place (seq)
        join agui.run_input as beside
            on beside.thread_key operator(pg_catalog.=) batch.thread_key and beside.run_no operator(pg_catalog.=) batch.run_no
        where place.seq operator(pg_catalog.>=) batch.first_seq and place.seq operator(pg_catalog.<) (batch.first_seq operator(pg_catalog.+) batch.n)
            and (select page.bytes from page) operator(pg_catalog.<=) @most_bytes::bigint
    )::pg_catalog.json as input,
    (select page.bytes from page)::bigint as page_bytes,
    (select page.has_more from page)::boolean as has_more
from agui.batch
where batch.thread_key operator(pg_catalog.=) @thread_key::pg_catalog.uuid
    and batch.first_seq operator(pg_catalog.>=) @from_seq::bigint and batch.first_seq operator(pg_catalog.<=) (select page.last_seq from page)
    and batch.run_no operator(pg_catalog.=) any (@run_nos::int[])
order by batch.first_seq;

-- name: AddMessages :exec
select agui_internal.add_messages(
    @thread_key::pg_catalog.uuid, @message_nos::int[], @message_ids::pg_catalog.text[], @roles::pg_catalog.text[], @bodies::pg_catalog.text[], @print::boolean[]
);

-- name: AddSnapshot :exec
select agui_internal.add_snapshot(
    @thread_key::pg_catalog.uuid, @run_no::int, @through_seq::bigint, @lows::int[], @highs::int[], @state::pg_catalog.text, @print_state::boolean,
    @interrupts::pg_catalog.json, sqlc.narg(lanes)::pg_catalog.json, @rules::int
);

-- name: RefuseDamagedLog :exec
select agui_internal.refuse_damaged_log(@thread_key::pg_catalog.uuid, run_no) from pg_catalog.unnest(@run_nos::int[]) as run_no;

-- name: MarkCompacted :exec
-- Except runs to which their writers appended events after the end in the meantime: those are
-- compacted a second time.
select agui_internal.mark_compacted(@thread_key::pg_catalog.uuid, @run_nos::int[], @last_seqs::bigint[], @ns::bigint[], @log_bytes::bigint[], @batches::bigint[]);

-- name: DropNeedlessSnapshot :one
select agui_internal.drop_needless_snapshot(@thread_key::pg_catalog.uuid, @run_no::int)::boolean as dropped;

-- name: CompactRunning :exec
call agui.compact_running(@every_events::int, sqlc.narg(max_time)::interval);

-- name: SplitInputs :exec
call agui_internal.split_inputs(sqlc.narg(max_time)::interval);
