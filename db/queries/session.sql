-- name: SaveSessionState :one
select agui.save_session_state(
    @thread_id::pg_catalog.text, @key::pg_catalog.text, sqlc.narg(document)::pg_catalog.json, sqlc.narg(run_id)::pg_catalog.text, @expected_version::bigint, @overwrite::boolean, @scope::pg_catalog.text
)::bigint as version;

-- name: RemoveSessionState :one
select agui.remove_session_state(
    @thread_id::pg_catalog.text, @key::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @expected_version::bigint, @overwrite::boolean, @scope::pg_catalog.text
)::bigint as version;

-- name: LoadSessionState :many
-- One row, or none.
select
    (state).key::pg_catalog.text as key, coalesce((state).run_id, '')::pg_catalog.text as run_id, (state).version::bigint as version,
    (state).saved_at::pg_catalog.timestamptz as saved_at, (state).document::pg_catalog.json as document
from agui.load_session_state(
    @thread_id::pg_catalog.text, @key::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, sqlc.narg(version)::bigint, @scope::pg_catalog.text
) as state;

-- name: SessionStates :many
select
    (state).key::pg_catalog.text as key, coalesce((state).run_id, '')::pg_catalog.text as run_id, (state).version::bigint as version,
    (state).saved_at::pg_catalog.timestamptz as saved_at, (state).document::pg_catalog.json as document
from agui.session_states(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text) as state;

-- name: SessionVersions :many
select
    (state).key::pg_catalog.text as key, coalesce((state).run_id, '')::pg_catalog.text as run_id, (state).version::bigint as version,
    (state).saved_at::pg_catalog.timestamptz as saved_at, (state).document::pg_catalog.json as document
from agui.session_versions(@thread_id::pg_catalog.text, @key::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text) as state;

-- name: LoadSession :one
select agui.load_session(@thread_id::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text)::pg_catalog.json as session;

-- name: LoadSessions :one
-- An empty text in place of a run names none.
select agui.load_sessions(
    @thread_ids::pg_catalog.text[],
    array(
        select case when item.run_id operator(pg_catalog.<>) '' then item.run_id end
        from pg_catalog.unnest(@run_ids::pg_catalog.text[]) with ordinality as item (run_id, place)
        order by item.place
    ),
    @scope::pg_catalog.text
)::pg_catalog.json as sessions;

-- name: SaveSession :one
select agui.save_session(sqlc.narg(session)::pg_catalog.json, @scope::pg_catalog.text)::pg_catalog.json as versions;

-- name: SaveSessions :one
select agui.save_sessions(@sessions::pg_catalog.json, @scope::pg_catalog.text)::pg_catalog.json as versions;

-- name: SaveCheckpoint :one
select agui.save_checkpoint(
    @thread_id::pg_catalog.text, @checkpoint_id::pg_catalog.text, sqlc.narg(document)::pg_catalog.json, sqlc.narg(parent_id)::pg_catalog.text, @namespace::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text
)::bigint as checkpoint_no;

-- name: LoadCheckpoint :many
-- One row, or none.
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::pg_catalog.text as namespace,
    (checkpoint).checkpoint_id::pg_catalog.text as checkpoint_id, coalesce((checkpoint).parent_id, '')::pg_catalog.text as parent_id,
    coalesce((checkpoint).run_id, '')::pg_catalog.text as run_id, (checkpoint).saved_at::pg_catalog.timestamptz as saved_at, (checkpoint).document::pg_catalog.json as document
from agui.load_checkpoint(
    @thread_id::pg_catalog.text, sqlc.narg(checkpoint_id)::pg_catalog.text, @namespace::pg_catalog.text, sqlc.narg(run_id)::pg_catalog.text, @scope::pg_catalog.text
) as checkpoint;

-- name: Checkpoints :many
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::pg_catalog.text as namespace,
    (checkpoint).checkpoint_id::pg_catalog.text as checkpoint_id, coalesce((checkpoint).parent_id, '')::pg_catalog.text as parent_id,
    coalesce((checkpoint).run_id, '')::pg_catalog.text as run_id, (checkpoint).saved_at::pg_catalog.timestamptz as saved_at, (checkpoint).document::pg_catalog.json as document
from agui.checkpoints(@thread_id::pg_catalog.text, sqlc.narg(namespace)::pg_catalog.text, @scope::pg_catalog.text) as checkpoint;

-- name: CheckpointLineage :many
select
    (checkpoint).checkpoint_no::bigint as checkpoint_no, (checkpoint).namespace::pg_catalog.text as namespace,
    (checkpoint).checkpoint_id::pg_catalog.text as checkpoint_id, coalesce((checkpoint).parent_id, '')::pg_catalog.text as parent_id,
    coalesce((checkpoint).run_id, '')::pg_catalog.text as run_id, (checkpoint).saved_at::pg_catalog.timestamptz as saved_at, (checkpoint).document::pg_catalog.json as document
from agui.checkpoint_lineage(@thread_id::pg_catalog.text, sqlc.narg(checkpoint_id)::pg_catalog.text, @namespace::pg_catalog.text, @scope::pg_catalog.text) as checkpoint;
