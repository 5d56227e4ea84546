create type agui.stats_row as (
    threads             bigint,
    runs                bigint,
    running_runs        bigint,
    finished_runs       bigint,
    interrupted_runs    bigint,
    cancelled_runs      bigint,
    failed_runs         bigint,
    cut_off_runs        bigint,
    events              bigint,
    repacked_runs       bigint,
    compacted_log_bytes bigint,
    log_disk_bytes      bigint,
    snapshot_disk_bytes bigint,
    tree_disk_bytes     bigint,
    session_disk_bytes  bigint,
    erased_threads      bigint,
    is_exact            boolean
);

comment on type agui.stats_row is
    'Counts and sizes of a store, or of one scope of it. threads; runs; running_runs: runs in '
    'progress, always exact; finished_runs: runs that ended with RUN_FINISHED and are not '
    'interrupted or cancelled; interrupted_runs: ended with an interrupt, answered or not; '
    'cancelled_runs: stopped; failed_runs: ended with RUN_ERROR; cut_off_runs: ended on behalf of '
    'their writers. events: of the runs that have ended. repacked_runs: runs whose batches '
    'agui.repack has joined. compacted_log_bytes: stored size of the batches of the compacted '
    'runs. The sizes on disk include indexes and rows that wait for vacuum, and are null for a '
    'role that sees one scope: log_disk_bytes; snapshot_disk_bytes with messages; '
    'tree_disk_bytes: threads and runs; session_disk_bytes: session state and checkpoints. '
    'erased_threads: those whose erasure was not lifted. is_exact: false if counts other than '
    'running_runs are estimates.';
