-- name: Stats :one
-- Bytes on disk are 0 if the role sees only one scope.
select
    threads::bigint, runs::bigint, running_runs::bigint, finished_runs::bigint, interrupted_runs::bigint, cancelled_runs::bigint,
    failed_runs::bigint, cut_off_runs::bigint, events::bigint,
    repacked_runs::bigint, compacted_log_bytes::bigint, coalesce(log_disk_bytes, 0)::bigint as log_disk_bytes,
    coalesce(snapshot_disk_bytes, 0)::bigint as snapshot_disk_bytes, coalesce(tree_disk_bytes, 0)::bigint as tree_disk_bytes,
    coalesce(session_disk_bytes, 0)::bigint as session_disk_bytes, erased_threads::bigint, is_exact::boolean
from agui.stats(@exact::boolean);

-- name: Lag :one
-- Ages in seconds; 0 if there is none.
select
    runs_to_compact::bigint, coalesce(extract(epoch from compaction_lag), 0)::float8 as compaction_lag,
    runs_to_repack::bigint, coalesce(extract(epoch from repack_lag), 0)::float8 as repack_lag,
    running_runs::bigint, stale_runs::bigint, coalesce(extract(epoch from oldest_sign_of_life), 0)::float8 as oldest_sign_of_life,
    quarantined_runs::bigint, is_exact::boolean
from agui.lag(@exact::boolean);
