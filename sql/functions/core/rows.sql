-- always: content
create type agui.activity as (
    message_id    text,
    activity_type text,
    content       json,
    run_id        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    updated_at    timestamptz
);

comment on type agui.activity is
    'An activity of a conversation: its id, type and content, the run that began it, and the seq '
    'and time of its first and last event.';

-- always: call_no
create type agui.append_result as (
    call_no     int,
    last_seq    bigint,
    error_code  text,
    error       text,
    detail      text,
    hint        text,
    recorded_at timestamptz
);

comment on type agui.append_result is
    'The result of one call of agui.append_many. call_no is the number of the call, from 1. '
    'last_seq is the seq of its last event. If the call was refused, last_seq is null and '
    'error_code is the SQLSTATE, with the error text, its detail and its hint. recorded_at is when '
    'the events were recorded, if they continue a run in progress and all of them are new; '
    'otherwise null.';

-- always: running, seq, events
create type agui.attachment as (
    run_id      text,
    status      text,
    running     text[],
    seq         bigint,
    recorded_at timestamptz,
    events      json
);

comment on type agui.attachment is
    'The result of agui.attach. run_id: the run (null: the thread does not exist yet). status: its '
    'current status. running: the ids of the runs of the thread now in progress. seq and '
    'recorded_at: the position to follow from, which is the last event taken into account (0 and '
    'null: none). events: the history up to that position, a JSON array of events.';

create type agui.attachment_part as (
    attachment agui.attachment,
    next_part  int
);

comment on type agui.attachment_part is
    'The result of agui.attach_part. attachment: that of agui.attach, with the events of one part. '
    'next_part: the number of the part behind it; null: there is none.';

create type agui.attachment_row as (
    n          int,
    message_id text,
    type       text,
    mime_type  text,
    filename   text,
    bytes      bigint
);

comment on type agui.attachment_row is
    'A part of a message that holds data: its number in the conversation (from 1), the id of the '
    'message, and what the part says of itself: type (image, audio, video, document, binary), type '
    'of media, and name of the file (null: none). bytes: size of the decoded data.';

-- always: run_id, runs, status, is_head
create type agui.branch as (
    run_id      text,
    runs        int,
    forked_from text,
    status      text,
    last_seq    bigint,
    is_head     boolean
);

comment on type agui.branch is
    'A branch of a thread: its last run, the number of runs from the root to it, the last run that '
    'it shares with another branch (null: none), the status and last seq of its last run, and '
    'whether its last run is the head, from which a new run without a parent continues.';

-- always: point, is_filled, lacks_history, history_bytes
create type agui.branch_point_row as (
    parent_run_id text,
    point         text,
    is_filled     boolean,
    lacks_history boolean,
    history_bytes bigint
);

comment on type agui.branch_point_row is
    'Where a run continues (agui.branch_point). parent_run_id: its parent (null: none). point: the messages of the client continue the '
    'conversation (head), leave it with an edit (before), replace it (start), or were trimmed or reordered, and continue it '
    '(elsewhere). is_filled: the agent needs agui.agent_messages in place of what the client sent. lacks_history: the client lacks '
    'stored messages, or has them under other ids. history_bytes: size of the stored messages and the state at the parent.';

-- always: scope, thread_id, seq, hash, recorded_at
create type agui.chain_head as (
    scope     text,
    thread_id text,
    seq       bigint,
    hash      bytea,
    recorded_at timestamptz
);

comment on type agui.chain_head is
    'The last link of a chained thread: the seq of the last event that it covers, its hash '
    '(SHA-256, 32 bytes), and when that event was recorded.';

create type agui.changed_run as (
    position      text,
    scope         text,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    status        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    ended_at      timestamptz,
    thread_uid    uuid,
    is_erased     boolean
);

comment on type agui.changed_run is
    'A run that began, ended, or took events after its end; or, if is_erased, a thread that was erased: '
    'then only position and thread_uid are not null. position: what agui.changes takes to go on behind '
    'it. thread_uid: a random id of the thread, another one if it is erased and begun again; all that '
    'was copied of an erased thread has it. The others are those of the run when it was read, which may be later than the '
    'change: last_seq and ended_at are null while it is running. Its events are those of the run from '
    'first_seq on (agui.events).';

create type agui.channel_write_row as (
    place         int,
    checkpoint_id text,
    channel       text,
    task_id       text,
    type          text,
    body          json,
    bytes         bytea
);

comment on type agui.channel_write_row is
    'A step in the history of a channel: a write of a task, or (task_id is null) the value that the '
    'writes after it build on. body, byte for byte, if it is JSON (its type is json), otherwise bytes. '
    'place: its place in the history, -1 for the newest step, -2 for the one before it, ….';

create type agui.checkpoint_content as (
    thread_id     text,
    namespace     text,
    checkpoint_id text,
    parent_id     text,
    run_id        text,
    cursor        text,
    kind          text,
    channel       text,
    version       text,
    task_id       text,
    task_path     text,
    place         int,
    type          text,
    body          json,
    bytes         bytea
);

comment on type agui.checkpoint_content is
    'A piece of a checkpoint of a graph. kind says which: document (without the values of channels), '
    'metadata, value (of a channel, with its version), or write (what a task wrote to a channel after the '
    'checkpoint; place is the place in its writes). body is the content, byte for byte, if it is JSON '
    '(its type is json), otherwise bytes. parent_id: the checkpoint that it continues from (null: '
    'none). run_id: the run of the log that the graph was working on (null: none was named). cursor: '
    'the place of the checkpoint in a list, for agui.checkpoint_contents.';

-- always: checkpoint_no, namespace, checkpoint_id, saved_at, document
create type agui.checkpoint_row as (
    checkpoint_no bigint,
    namespace     text,
    checkpoint_id text,
    parent_id     text,
    run_id        text,
    saved_at      timestamptz,
    document      json
);

comment on type agui.checkpoint_row is
    'A checkpoint: its number in its thread (see agui.save_checkpoint); its namespace and id; the checkpoint '
    'that it continues from (null: none); the run that the engine was working on (null: none was '
    'named); the time when it was saved; and its document, byte for byte.';

create type agui.consumed_run as (
    position      text,
    scope         text,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    status        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    ended_at      timestamptz,
    thread_uid    uuid,
    is_erased     boolean,
    read_seq      bigint
);

comment on type agui.consumed_run is
    'A row of agui.changes for a consumer. position: what agui.move_consumer takes once the row is '
    'processed. read_seq: the seq of the last event of the thread that the consumer has processed '
    '(agui.mark_read); 0: none.';

create type agui.consumer_place as (
    scope      text,
    consumer   text,
    position   text,
    behind     bigint,
    is_lost    boolean,
    created_at timestamptz,
    moved_at   timestamptz
);

comment on type agui.consumer_place is
    'A consumer of agui.consume. scope: null for all scopes. position: it has processed the changes up '
    'to here (null: none). behind: how many changed runs and erased threads it has not processed, at most 10000 are '
    'counted; null if is_lost. is_lost: the position is of another history of transactions (the database '
    'was restored, or failed over), so it has to begin again. created_at, moved_at: when its place was '
    'noted first and last.';

create type agui.error_page as (
    errors   agui.error_row[],
    next_seq bigint
);

comment on type agui.error_page is
    'A page of the errors of a thread, in the order of seq. next_seq: at_seq of the page before it; '
    'null: there are no others. A page that has one may have few errors, or none.';

create type agui.error_row as (
    seq            bigint,
    run_id         text,
    kind           text,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text,
    tool_call_id   text,
    tool           text,
    recorded_at    timestamptz
);

comment on type agui.error_row is
    'Something that went wrong in a thread: seq, run and time of the event that says so. kind: how a '
    'run ended (failed, cut_off or cancelled; error_code, error_message, stop_reason and '
    'cut_off_reason as in agui.run_info), or tool: a tool call whose result is an error, as in '
    'agui.tool_fact, which error_message has. tool: the name of its function; null: neither the run '
    'nor its parent made the call. Texts are up to 1,000 characters.';

-- always: seq, run_id, type, recorded_at, payload
create type agui.event_row as (
    seq         bigint,
    run_id      text,
    type        text,
    recorded_at timestamptz,
    payload     json
);

comment on type agui.event_row is
    'An event of the log: its position in the thread, its run, its type, the time when it was '
    'appended, and the event byte for byte.';

create type agui.found_text as (
    scope      text,
    thread_id  text,
    run_id     text,
    message_id text,
    role       text,
    seq        bigint,
    said_at    timestamptz,
    rank       real,
    snippet    text,
    cursor     text,
    searched_to timestamptz
);

comment on type agui.found_text is
    'A message that agui.search found. run_id, seq, said_at: the run that brought the text first, and the '
    'event with which it began, or the first event of the run if its input brought it. message_id: null if '
    'it has none. rank: how well it matches. snippet: the parts of the text that match. cursor: what '
    'agui.search takes to go on behind it. searched_to: so many match that only the newest were ranked, '
    'back to this time; null: all were.';

-- always: seq, last_seq, run_id, type, event_count, created_at, payload
create type agui.history_row as (
    seq          bigint,
    last_seq     bigint,
    run_id       text,
    type         text,
    event_count  bigint,
    created_at   timestamptz,
    completed_at timestamptz,
    payload      json
);

comment on type agui.history_row is
    'One event of the history of a thread, or several joined events. seq and last_seq are those of '
    'the first and the last one; event_count is their number; created_at and completed_at are the '
    'times when the first and the last one were appended (completed_at is null for a single '
    'event); payload is the event. An event that was joined before it was appended states its own '
    'count and times.';

create type agui.interrupt_row as (
    interrupt_id text,
    reason       text,
    message      text,
    tool_call_id text,
    expires_at   timestamptz,
    expired      boolean,
    interrupt    json
);

comment on type agui.interrupt_row is
    'An open interrupt: id, reason, message and toolCallId (null if it has none, or if it is not a '
    'string); expires_at, the time in expiresAt (null if there is none, or if it is not a time); '
    'expired, whether that time has passed, so that a client can no longer answer it but only cancel '
    'it; and the interrupt as the agent sent it.';

-- always: call_no, status
create type agui.keep_alive_row as (
    call_no           int,
    status            text,
    stop_requested_at timestamptz,
    stop_reason       text,
    cut_off_reason    text
);

comment on type agui.keep_alive_row is
    'A message from agui.keep_alive to the writer of a run. call_no is the position of the run in '
    'the arguments, from 1. status is the status of the run, or claimed before its beginning. '
    'stop_requested_at and stop_reason are set if it should stop. cut_off_reason is set if it was '
    'ended on behalf of its writer.';

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

-- always: position, message
create type agui.message_row as (
    "position" int,
    message_id text,
    role       text,
    message    json
);

comment on type agui.message_row is
    'A message of a conversation: its position (from 1), its id and role (null if it has none), '
    'and the message in the form that AG-UI clients use.';

-- always: runs, all_runs, runs_without_usage
create type agui.model_usage as (
    provider                 text,
    model                    text,
    input_tokens             bigint,
    output_tokens            bigint,
    total_tokens             bigint,
    reasoning_tokens         bigint,
    cached_input_tokens      bigint,
    cache_write_input_tokens bigint,
    runs                     bigint,
    all_runs                 bigint,
    runs_without_usage       bigint
);

comment on type agui.model_usage is
    'The tokens that runs used of a model of a provider (null: not named), as AG-UI counts them: '
    'total_tokens is input_tokens plus output_tokens; reasoning_tokens is a part of output_tokens, '
    'cached_input_tokens and cache_write_input_tokens are parts of input_tokens, so never add '
    'them. Null: no run reported the count. 9223372036854775807: that many or more. runs: how many '
    'runs used the model. The same in all rows: all_runs, how many runs were read, and '
    'runs_without_usage, how many of them reported nothing.';

create type agui.placed_message as (
    "position" int,
    message_id text,
    role       text,
    message    json,
    run_id     text,
    first_seq  bigint,
    last_seq   bigint,
    started_at timestamptz,
    updated_at timestamptz,
    calls      json,
    cursor     text
);

comment on type agui.placed_message is
    'A message of a conversation and its place in the log. position, message_id, role and message: '
    'as in agui.message_row. run_id and first_seq: the run and the event that brought it; an input '
    'beside the events counts at RUN_STARTED. last_seq: the last event of that run that is about it, '
    'such as its end, or one of a tool call in it. started_at and updated_at: the timestamps of these '
    'two events, else when they were appended. All of them null: the message has no id. calls: the '
    'places of the tool calls in it, from that run, as an array of {toolCallId, firstSeq, lastSeq, '
    'startedAt, updatedAt}; null: none. A result is a message with a place of its own. cursor: to '
    'continue before the message.';

-- always: thread_no
create type agui.poll_row as (
    thread_no   int,
    run_id      text,
    status      text,
    first_seq   bigint,
    n           int,
    recorded_at timestamptz,
    earlier_us  int[],
    events      json,
    problem     text
);

comment on type agui.poll_row is
    'A row of agui.poll: new events for a follower, as a JSON array of n events of one run, with '
    'consecutive seqs from first_seq on. thread_no is the position of the thread in the arguments, '
    'from 1. status is the current status of the run, which may have ended later in the log. '
    'recorded_at is the time when the last of the events was appended; earlier_us, if not null, '
    'says for each event how many microseconds earlier it was appended. If problem is set, the '
    'other columns are null, and it is the SQLSTATE why the thread cannot be followed from there: '
    'UI012 another thread has the same key, UI017 the log was rewound, UI014 the thread was '
    'erased, UI027 another node of the cluster has it. A row with only thread_no says that the thread has more events than fit.';

-- always: run_id, parallel, claimed_at, alive_until
create type agui.run_claim as (
    run_id        text,
    parent_run_id text,
    parallel      boolean,
    claimed_at    timestamptz,
    alive_until   timestamptz
);

comment on type agui.run_claim is
    'The claim of a run that will begin (agui.claim_run): the parent that it will have (null: '
    'none), whether it may begin while others are in progress, and when the lease of the claim '
    'ends if agui.keep_alive does not renew it.';

-- always: depth, run_id, status, first_seq, started_at, run_no
create type agui.run_info as (
    depth         int,
    run_id        text,
    parent_run_id text,
    status        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    ended_at      timestamptz,
    run_no        int,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text
);

comment on type agui.run_info is
    'A run as the functions of the tree return it. depth is the number of runs from the root to it '
    '(1 for a root). last_seq and ended_at are null while it is running. run_no numbers the runs '
    'of the thread in the order in which they began. status: running, finished, interrupted (waits '
    'for answers), cancelled, failed or cut_off. The last four columns say why it ended so, or are '
    'null: code and message of RUN_ERROR, the reason of the stop that cancelled it, and why it was '
    'ended on behalf of its writer. Each is cut after 1,000 characters.';

create type agui.run_row as (
    thread_id      text,
    run_id         text,
    parent_run_id  text,
    status         text,
    title          text,
    agent          text,
    first_seq      bigint,
    last_seq       bigint,
    started_at     timestamptz,
    ended_at       timestamptz,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text,
    cursor         text
);

comment on type agui.run_row is
    'A run in a list over threads. title and agent are those of its thread, as agui.threads shows '
    'them. The columns from error_code to cut_off_reason say why it ended so, as in agui.run_info. '
    'cursor: the position of the run in lists, from which agui.list_runs continues.';

-- always: run_id, status, first_seq, last_seq, started_at, alive_at, is_stale
create type agui.run_status as (
    run_id            text,
    parent_run_id     text,
    status            text,
    first_seq         bigint,
    last_seq          bigint,
    started_at        timestamptz,
    ended_at          timestamptz,
    alive_at          timestamptz,
    is_stale          boolean,
    has_heartbeat     boolean,
    stop_requested_at timestamptz,
    stop_reason       text,
    cut_off_reason    text,
    error_code        text,
    error_message     text
);

comment on type agui.run_status is
    'The status of a run: its parent (null: it is a root); running, finished, interrupted (it waits '
    'for answers), cancelled, failed (RUN_ERROR) or cut_off (ended on behalf of its writer); its last '
    'seq so far; its last sign of life, an event or a call of agui.keep_alive; is_stale, if it is '
    'running but its last sign of life is longer ago than the lease; has_heartbeat, if its writer '
    'sends heartbeats, as a recorder does; the time and reason of a stop request; and the reason why '
    'it was ended on behalf of its writer, if it was; code and message of the RUN_ERROR that ended it.';

-- always: key, version, saved_at
create type agui.session_document as (
    key      text,
    run_id   text,
    version  bigint,
    saved_at timestamptz,
    document json
);

comment on type agui.session_document is
    'A session state document: its key, the run at which it was saved (null: it belongs to the '
    'thread itself), its version, the time when it was saved, and its document, byte for byte. A '
    'null document records a removal.';

-- always: type, payload
create type agui.session_message as (
    seq        bigint,
    type       text,
    message_id text,
    run_id     text,
    created_at timestamptz,
    payload    json
);

comment on type agui.session_message is
    'A message of a legacy session, the format in use before AG-UI: user, assistant and system '
    '{content}, tool_use {id, name, input}, tool_result {tool_use_id, content}, error {message, '
    'code}. seq, run_id and created_at are those of the event that brought it. message_id is the '
    'AG-UI message that it is, or is a part of.';

-- always: run_id, events
create type agui.session_run as (
    run_id text,
    events json
);

comment on type agui.session_run is
    'A run converted from messages of a legacy session, as arguments for agui.append.';

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

-- always: depth, subagent_run_id, status, run_id, last_run_id, first_seq, last_seq, event_count, started_at
create type agui.subagent as (
    depth                  int,
    subagent_run_id        text,
    name                   text,
    description            text,
    parent_subagent_run_id text,
    parent_tool_call_id    text,
    parent_message_id      text,
    status                 text,
    run_id                 text,
    last_run_id            text,
    first_seq              bigint,
    last_seq               bigint,
    event_count            bigint,
    started_at             timestamptz,
    ended_at               timestamptz,
    duration               interval,
    result                 json,
    interrupt_ids          text[],
    error_message          text,
    error_code             text,
    usage                  json
);

comment on type agui.subagent is
    'An invocation of a subagent. depth: 1 for a subagent of the main agent, 2 for a subagent of '
    'that, and so on. name, description and the parents: as its first SUBAGENT_STARTED names them '
    '(null: not named). status: running, finished, suspended (waits for answers to interrupt_ids), '
    'failed (with error_message and error_code), or cut_off (its run ended first). run_id and '
    'last_run_id: the runs of its first and last event; they differ if it was suspended and '
    'resumed. event_count: the events that name it. ended_at: null while it is running. duration: '
    'the time between its first and last event in each run, added up; the wait while it is '
    'suspended does not count. result, interrupt_ids, error_message, error_code and usage (an '
    'array, not in AG-UI 1.0, but some agents send it): of its last end; null while it is running.';

create type agui.thread_page_row as (
    threads     agui.thread_row[],
    next_cursor text,
    searched_to timestamptz
);

comment on type agui.thread_page_row is
    'A page of threads, most recent activity first, and the cursor of the next page. The list ends '
    'only if next_cursor is null: a short or empty page may have one. searched_to: if the page ends '
    'because 10,000 threads were examined, the active_at of the last one, so that a user can see '
    'how far back a search went; else null.';

-- always: thread_id, metadata, archived, created_at, active_at, is_stale, runs, branches, cursor
create type agui.thread_row as (
    thread_id   text,
    title       text,
    agent       text,
    metadata    jsonb,
    archived    boolean,
    created_at  timestamptz,
    active_at   timestamptz,
    head_run_id text,
    status      text,
    is_stale    boolean,
    runs        int,
    branches    int,
    cursor      text,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text
);

comment on type agui.thread_row is
    'A thread in a list. title: the one that was set, else the beginning of the first user '
    'message, else null. agent (null: not set) and metadata: as set. archived: whether it is '
    'archived. created_at: when it was created. active_at: when a run of it last began or ended. '
    'head_run_id and status: the head and its status (null while there are no runs). is_stale: '
    'whether the head is in progress without a sign of life within the lease. runs and branches: '
    'how many there are. cursor: the position of the thread in lists, from which agui.threads '
    'continues. The last four columns say why the head ended so, as in agui.run_info.';

-- always: tool_call_id, status
create type agui.tool_call as (
    tool_call_id      text,
    name              text,
    arguments         text,
    arguments_json    json,
    result            json,
    parent_message_id text,
    run_id            text,
    first_seq         bigint,
    last_seq          bigint,
    started_at        timestamptz,
    ended_at          timestamptz,
    status            text
);

comment on type agui.tool_call is
    'A tool call. arguments: the text of the arguments received so far (with JSON escapes for what '
    'text cannot contain: \u0000 or half an emoji). arguments_json: the same as JSON (null: it is '
    'not valid JSON). result: the content of the message of the tool (null: none yet). first_seq '
    'and last_seq: its first and last event. status: streaming (arguments are arriving), called '
    '(the arguments are complete, no result yet), completed, or cut_off (its run failed, or ended '
    'before the arguments were complete, and there is no result). ended_at: when the result '
    'arrived or the call was cut off.';

-- always: problem, severity
create type agui.verify_row as (
    run_id   text,
    problem  text,
    severity text
);

comment on type agui.verify_row is
    'A finding of agui.verify and the run it concerns (run_id is null if none can be named). '
    'severity: ''damage'' is what the database must not contain; ''note'' is what the agent or its '
    'writer did against the protocol, stored as it was appended.';

create type agui.webhook_failure as (
    webhook   text,
    event_id  text,
    kind      text,
    scope     text,
    thread_id text,
    run_id    text,
    ended_at  timestamptz,
    attempts  int,
    outcome   text,
    failed_at timestamptz,
    next_attempt_at timestamptz,
    body      json
);

comment on type agui.webhook_failure is
    'A request of a webhook that failed: kind and body are what was to be sent when the run ended at '
    'ended_at, outcome is what came of the last attempt. next_attempt_at null: it failed for good.';

create type agui.webhook_info as (
    name       text,
    url        text,
    scope      text,
    kinds      text[],
    enabled    boolean,
    disabled_because text,
    created_at timestamptz,
    created_by text,
    to_send    bigint,
    failed     bigint,
    retrying   bigint,
    old_secret_until timestamptz,
    is_elsewhere boolean
);

comment on type agui.webhook_info is
    'A webhook (agui.webhook) without its secret. scope: null means all scopes. to_send is the number '
    'of requests that wait or are being sent, failed the number of those that failed for good, '
    'retrying that of those that failed and are repeated. old_secret_until: until when the secret before '
    'agui.rotate_webhook_secret signs too; null: there is none. is_elsewhere: another database sends the '
    'requests, of which this one is a copy (agui.take_over_webhooks).';
