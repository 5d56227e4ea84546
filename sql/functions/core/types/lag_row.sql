create type agui.lag_row as (
    runs_to_compact     bigint,
    compaction_lag      interval,
    runs_to_repack      bigint,
    repack_lag          interval,
    running_runs        bigint,
    stale_runs          bigint,
    oldest_sign_of_life interval,
    quarantined_runs    bigint,
    is_exact            boolean
);

comment on type agui.lag_row is
    'The backlog of the jobs and the age of runs in progress. runs_to_compact: ended runs that '
    'compaction has not processed yet; compaction_lag: time since the first of them ended (null: '
    'there is none). runs_to_repack: runs that ended longer ago than '
    'agui_internal.repack_after() and are not repacked yet; repack_lag: time since the first of '
    'them ended. running_runs: runs in progress; stale_runs: those without a sign of life (a '
    'batch, or seen_at) within their lease; oldest_sign_of_life: longest time since the last sign '
    'of life of a run in progress. quarantined_runs: rows of agui.quarantine. is_exact: false if '
    'a queue was longer than the part of it that was read, so that runs_to_compact or '
    'runs_to_repack are at least as shown.';
