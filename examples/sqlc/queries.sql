-- Arguments are named as in SQL, those with defaults can be left out. An array needs a cast, for sqlc takes it for a single value; and no query may be
-- called Append, which would hide that of Go.

-- name: AppendEvents :one
select agui.append(@thread_id, @run_id, @events)::bigint as seq;

-- name: LoggedEvents :many
select seq, type, payload from agui.event where thread_id = @thread_id and type = @type order by seq;

-- name: EventsBehind :many
select * from agui.events(@thread_id, after_seq => @after_seq);

-- name: Conversation :many
select position, message_id, role, message from agui.messages(@thread_id, @run_id) order by position;

-- name: Restore :one
select agui.restore(@thread_id);

-- name: Attach :one
select * from agui.attach(@thread_id);

-- name: Poll :many
select * from agui.poll(@thread_ids::text[], @after_seqs::bigint[]);

-- name: Threads :many
select * from agui.threads(scope => @scope);

-- name: Status :one
select * from agui.status(@thread_id, sqlc.narg(run_id));

-- name: ToolCalls :many
select tool_call_id, name, arguments_json, status from agui.tool_calls(@thread_id, at_time => @at_time);

-- name: NotedEvents :many
select note.note, event.seq, event.type, event.recorded_at
from note
join agui.event as event on event.thread_id = note.thread_id and event.seq = note.seq
where note.thread_id = @thread_id;

-- name: SaveNote :exec
insert into note (thread_id, seq, note) values (@thread_id, @seq, @note);
