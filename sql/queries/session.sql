-- name: SaveSessionState :one
select agui.save_session_state(
    @thread_id::text, @key::text, sqlc.narg(document)::json, sqlc.narg(run_id)::text, @expected_version::bigint, @overwrite::boolean, @scope::text
)::bigint as version;

-- name: RemoveSessionState :one
select agui.remove_session_state(
    @thread_id::text, @key::text, sqlc.narg(run_id)::text, @expected_version::bigint, @overwrite::boolean, @scope::text
)::bigint as version;

-- name: LoadSessionState :many
-- One row, or none.
select
    (state).key::text as key, coalesce((state).run_id, '')::text as run_id, (state).version::bigint as version,
    (state).saved_at::timestamptz as saved_at, (state).document::json as document
from agui.load_session_state(
    @thread_id::text, @key::text, sqlc.narg(run_id)::text, sqlc.narg(version)::bigint, @scope::text
) as state;

-- name: SessionStates :many
-- A last row with version 0: page_bytes ended the page.
select
    coalesce((state).key, '')::text as key, coalesce((state).run_id, '')::text as run_id, coalesce((state).version, 0)::bigint as version,
    coalesce((state).saved_at, '0001-01-01 00:00:00+00')::timestamptz as saved_at, (state).document::json as document
from agui.session_states(
    @thread_id::text, sqlc.narg(run_id)::text, @scope::text, sqlc.narg(after_key)::text, sqlc.narg(page_bytes)::int
) as state;

-- name: SessionVersions :many
-- A last row with version 0: page_bytes ended the page.
select
    coalesce((state).key, '')::text as key, coalesce((state).run_id, '')::text as run_id, coalesce((state).version, 0)::bigint as version,
    coalesce((state).saved_at, '0001-01-01 00:00:00+00')::timestamptz as saved_at, (state).document::json as document
from agui.session_versions(
    @thread_id::text, @key::text, sqlc.narg(run_id)::text, @scope::text, sqlc.narg(before_version)::bigint, sqlc.narg(page_bytes)::int
) as state;

-- name: LoadSession :one
select agui.load_session(@thread_id::text, sqlc.narg(run_id)::text, @scope::text)::json as session;

-- name: LoadSessions :one
-- An empty text in place of a run names none.
select agui.load_sessions(
    @thread_ids::text[],
    array(
        select case when item.run_id <> '' then item.run_id end
        from unnest(@run_ids::text[]) with ordinality as item (run_id, place)
        order by item.place
    ),
    @scope::text
)::json as sessions;

-- name: SaveSession :one
select agui.save_session(sqlc.narg(session)::json, @scope::text)::json as versions;

-- name: SaveSessions :one
select agui.save_sessions(@sessions::json, @scope::text)::json as versions;

-- name: SaveCheckpoint :one
select agui.save_checkpoint(
    @thread_id::text, @checkpoint_id::text, sqlc.narg(document)::json, sqlc.narg(parent_id)::text, @namespace::text, sqlc.narg(run_id)::text, @scope::text
)::bigint as checkpoint_no;

-- name: LoadCheckpoint :many
-- One row, or none.
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::text as namespace,
    (checkpoint).checkpoint_id::text as checkpoint_id, coalesce((checkpoint).parent_id, '')::text as parent_id,
    coalesce((checkpoint).run_id, '')::text as run_id, (checkpoint).saved_at::timestamptz as saved_at, (checkpoint).document::json as document
from agui.load_checkpoint(
    @thread_id::text, sqlc.narg(checkpoint_id)::text, @namespace::text, sqlc.narg(run_id)::text, @scope::text
) as checkpoint;

-- name: Checkpoints :many
-- A last row with checkpoint_no 0: page_bytes ended the page.
select
    coalesce((checkpoint).checkpoint_no, 0)::bigint as checkpoint_no, coalesce((checkpoint).namespace, '')::text as namespace,
    coalesce((checkpoint).checkpoint_id, '')::text as checkpoint_id, coalesce((checkpoint).parent_id, '')::text as parent_id,
    coalesce((checkpoint).run_id, '')::text as run_id, coalesce((checkpoint).saved_at, '0001-01-01 00:00:00+00')::timestamptz as saved_at, (checkpoint).document::json as document
from agui.checkpoints(
    @thread_id::text, sqlc.narg(namespace)::text, @scope::text, sqlc.narg(after_no)::bigint, sqlc.narg(page_bytes)::int
) as checkpoint;

-- name: CheckpointLineage :many
-- A last row with checkpoint_no 0: page_bytes ended the page.
select
    coalesce((checkpoint).checkpoint_no, 0)::bigint as checkpoint_no, coalesce((checkpoint).namespace, '')::text as namespace,
    coalesce((checkpoint).checkpoint_id, '')::text as checkpoint_id, coalesce((checkpoint).parent_id, '')::text as parent_id,
    coalesce((checkpoint).run_id, '')::text as run_id, coalesce((checkpoint).saved_at, '0001-01-01 00:00:00+00')::timestamptz as saved_at, (checkpoint).document::json as document
from agui.checkpoint_lineage(
    @thread_id::text, sqlc.narg(checkpoint_id)::text, @namespace::text, @scope::text, sqlc.narg(after_no)::bigint, sqlc.narg(page_bytes)::int
) as checkpoint;
