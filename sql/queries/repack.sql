-- name: NextToRepack :one
-- No row: there is none.
select (due).thread_key::uuid as thread_key, (due).run_no::int as run_no
from agui_internal.next_to_repack(sqlc.narg(near)::uuid, sqlc.narg(older_than)::interval, @passed_over::uuid[], @after_no::int) as due
where (due).thread_key is not null;

-- name: RepackRun :one
select coalesce((piece).next_seq, 0)::bigint as next_seq, (piece).joined::int as joined, (piece).is_busy::boolean as is_busy
from agui_internal.repack_run(@thread_key::uuid, @run_no::int, @after_seq::bigint) as piece;

-- name: ReweighSnapshots :one
select agui_internal.prune_snapshots(@thread_key::uuid, @from_no::int)::int as dropped;
