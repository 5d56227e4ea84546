-- name: TakeJobLock :one
-- Takes the lock of a job until the transaction ends, unless it is taken or the server is a
-- standby.
select
    pg_is_in_recovery()::boolean as is_standby,
    (not pg_is_in_recovery() and pg_try_advisory_xact_lock(agui_internal.job_lock_id(@job::text)))::boolean as is_taken;

-- name: AllowIdleTransaction :exec
-- Allows the transaction to be idle without a limit. transaction_timeout exists since PostgreSQL
-- 17.
select
    set_config('idle_in_transaction_session_timeout', '0', true),
    case when current_setting('transaction_timeout', true) is not null then set_config('transaction_timeout', '0', true) end;

-- name: FoldLimits :one
-- The limits of folds and of JSON patches, from the settings. Fails if the database folds by other rules.
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
from agui_internal.limits_of_folds(@rules::int) as limits;

-- name: JobLockProblem :one
-- Empty: the same job may be in progress.
select coalesce(agui_internal.job_lock_problem(@job::text), '')::text as problem;

-- name: ApplyRules :one
-- Of older rules, after an upgrade that changed them. Returns how many threads were done; 0: all are, or they are in use.
select agui_internal.apply_rules()::int as threads;

-- name: ProjectStep :one
-- How many runs were projected; 0: there are none.
select agui_internal.project_step()::int as runs;

-- name: SettleCalls :one
-- Of how many threads it was found which tool calls wait; 0: there are none.
select agui_internal.settle_calls()::int as threads;

-- name: RebuildFacts :exec
select agui.rebuild_facts();
