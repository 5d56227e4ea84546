-- The schema agui as sqlc (https://sqlc.dev) reads it, to be listed under "schema" in sqlc.yaml. Not to be run: functions have no bodies, and
-- views and the types of results are declared as tables, which is how sqlc knows their columns.
-- Written from the catalog of an installed schema: go test ./test -run SQLC -update-sqlc

create schema agui;

create table agui.batch (
    "thread_key" uuid not null,
    "first_seq" bigint not null,
    "recorded_at" timestamp with time zone not null,
    "n" integer not null,
    "run_no" integer not null,
    "events" json not null,
    "earlier_us" integer[],
    "text_bytes" integer,
    "hash" bytea,
    "links" integer[]
);
comment on table agui.batch is 'The log: a row holds the events of one append call, or of several that agui.repack joined. Triggers refuse every other change.';
comment on column agui.batch."first_seq" is 'seq of the first event in the batch; the next batch of the thread begins at first_seq + n.';
comment on column agui.batch."recorded_at" is 'When its last event was appended; never before the batch that precedes it in the thread.';
comment on column agui.batch."n" is 'Number of events in the batch.';
comment on column agui.batch."run_no" is 'The run that the events belong to. No foreign key: it would slow every append; agui.verify looks after it.';
comment on column agui.batch."events" is 'JSON array of the events as they were appended. json, not jsonb: every byte of an event comes back, also what jsonb cannot hold.';
comment on column agui.batch."earlier_us" is 'For each event how many microseconds before recorded_at it was appended, in a batch that agui.repack joined or agui.import_events made; null: all at once.';
comment on column agui.batch."text_bytes" is 'Octets of events where they may be compressed, so that a page of the log can be bounded without opening them; null: about as many as are stored.';
comment on column agui.batch."hash" is 'Where the thread is chained (agui.enable_chain): the hash of its last link (agui_internal.chain_link); null: it is not, or was not yet.';
comment on column agui.batch."links" is 'In a chained batch that agui.repack joined: how many events each of its links has; null: the batch is one link.';

create table agui.checkpoint (
    "thread_key" uuid not null,
    "checkpoint_no" bigint not null,
    "namespace" text not null,
    "checkpoint_id" text not null,
    "parent_no" bigint,
    "document" json not null,
    "saved_at" timestamp with time zone not null
);
comment on table agui.checkpoint is 'The state of a workflow engine at some point of a conversation; from its parents it went on to there.';
comment on column agui.checkpoint."checkpoint_no" is 'The checkpoints of a thread numbered 1, 2, 3, … in commit order. A parent has a smaller number than its children.';
comment on column agui.checkpoint."namespace" is 'Keeps the checkpoints of several workflows of a thread apart; '''' unless given.';
comment on column agui.checkpoint."checkpoint_id" is 'The engine''s name for it, unique in its namespace.';
comment on column agui.checkpoint."parent_no" is 'The checkpoint that it goes on from, of the same namespace; null: a root.';
comment on column agui.checkpoint."document" is 'The checkpoint, byte for byte.';
comment on column agui.checkpoint."saved_at" is 'When it was saved.';

create table agui.erasure (
    "erased_key" uuid not null,
    "erased_at" timestamp with time zone not null,
    "erased_by" text not null,
    "reason" text,
    "runs" integer not null,
    "events" bigint not null,
    "allowed_at" timestamp with time zone,
    "allowed_by" text
);
comment on table agui.erasure is 'That threads were erased: when, by whom and why, without their names. Until allowed_at is set nothing can be appended to them.';
comment on column agui.erasure."erased_key" is 'A salted hash of the thread''s key (agui_internal.erasure_key), by which the thread is known when somebody names it. Without the salt no name can be tried against it. The first half is that of the scope, as in thread_key.';
comment on column agui.erasure."erased_at" is 'When it was erased.';
comment on column agui.erasure."erased_by" is 'The role that was logged in.';
comment on column agui.erasure."reason" is 'What the caller gave as the reason.';
comment on column agui.erasure."runs" is 'Number of runs that it had.';
comment on column agui.erasure."events" is 'Number of events that it had.';
comment on column agui.erasure."allowed_at" is 'When agui.lift_erasure let new events in; null: they are refused.';
comment on column agui.erasure."allowed_by" is 'The role that was logged in then.';

create table agui.message (
    "thread_key" uuid not null,
    "message_no" integer not null,
    "message_id" text,
    "role" text,
    "body" json not null
);
comment on table agui.message is 'Versions of messages that snapshots point to. A version is written once and shared by all snapshots and branches that have it.';
comment on column agui.message."message_no" is 'Number of the version in its thread.';
comment on column agui.message."message_id" is 'id of the message, decoded; null when it has none.';
comment on column agui.message."role" is 'role of the message, decoded; null when it has none.';
comment on column agui.message."body" is 'The message as AG-UI clients know it.';

create table agui.run (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "parent_no" integer,
    "parent_given" boolean not null,
    "run_id" text not null,
    "status" text not null,
    "first_seq" bigint not null,
    "last_seq" bigint,
    "started_at" timestamp with time zone not null,
    "ended_at" timestamp with time zone,
    "seen_at" timestamp with time zone,
    "has_heartbeat" boolean not null,
    "open_from" integer not null,
    "stop_requested_at" timestamp with time zone,
    "stop_reason" text,
    "cut_off_reason" text,
    "n" bigint,
    "log_bytes" bigint,
    "repacked_at" timestamp with time zone
);
comment on table agui.run is 'A run of an agent: a node of its thread''s tree.';
comment on column agui.run."run_no" is 'The runs of a thread numbered 1, 2, 3, … as they began. A parent has a smaller number than its children.';
comment on column agui.run."parent_no" is 'The run that this one goes on from; null: a root.';
comment on column agui.run."parent_given" is 'Whether its writer gave the parent, or that there is none, beside the events. Otherwise it is the one that RUN_STARTED names, else the run begun before it.';
comment on column agui.run."run_id" is 'runId of the protocol, unique in its thread.';
comment on column agui.run."status" is 'running, finished (RUN_FINISHED, interrupts included) or failed (RUN_ERROR): what its last end says, also where events follow it.';
comment on column agui.run."first_seq" is 'seq of its first event.';
comment on column agui.run."last_seq" is 'seq of its last event; null while it is running. Runs that went on side by side interleave in the log.';
comment on column agui.run."started_at" is 'recorded_at of its first event.';
comment on column agui.run."ended_at" is 'recorded_at of its last event, also where that follows the end; null while it is running.';
comment on column agui.run."seen_at" is 'When its writer last said that the run is alive (agui.keep_alive), although it may have had no events to append.';
comment on column agui.run."has_heartbeat" is 'Whether its writer calls agui.keep_alive all the time: the setting heartbeat_lease is its lease as long as that goes on, else the setting lease.';
comment on column agui.run."open_from" is 'No run of the thread with a smaller number was in progress when this one began, or has been since: whoever looks for one begins here.';
comment on column agui.run."stop_requested_at" is 'When somebody first asked its writer to stop (agui.request_stop); null: nobody has.';
comment on column agui.run."stop_reason" is 'The reason that was given for it; null: none.';
comment on column agui.run."cut_off_reason" is 'Why it was ended in the place of its writer, who had gone; null: it was not.';
comment on column agui.run."n" is 'Number of its events, counted when compaction processed the run; null: not processed yet.';
comment on column agui.run."log_bytes" is 'Bytes that its batches and its input take as stored (compressed), measured when compaction processed the run and again when it was repacked; null: not processed yet.';
comment on column agui.run."repacked_at" is 'When its batches were joined into larger ones; null: not yet.';

create table agui.run_input (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "input" json not null
);
comment on table agui.run_input is 'The input of a run (RunAgentInput) that its writer gave beside the events, because its RUN_STARTED carries none. Never changed.';
comment on column agui.run_input."input" is 'The input, byte for byte. It counts as the input of RUN_STARTED unless the first RUN_STARTED carries an object of its own.';

create table agui.session_key (
    "thread_key" uuid not null,
    "key" text not null,
    "last_version" bigint not null,
    "saved_at" timestamp with time zone not null
);
comment on table agui.session_key is 'A key that session state of a thread is kept under. Whoever saves its next version holds this row, so versions are numbered without gaps, in commit order.';
comment on column agui.session_key."key" is 'The name that a part of the agent gave to what it keeps, for instance memory.';
comment on column agui.session_key."last_version" is 'Number of the version saved last, at whatever run. No number is given twice, also when the version itself has gone.';
comment on column agui.session_key."saved_at" is 'When that was.';

create table agui.session_state (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "key" text not null,
    "version" bigint not null,
    "document" json,
    "saved_at" timestamp with time zone not null
);
comment on table agui.session_state is 'What a part of the agent keeps of a conversation beside the events: a document per thread, run and key, in its last versions. A run has what was saved nearest to it on its lineage.';
comment on column agui.session_state."run_no" is 'The run that it was saved at; 0: none, it is the thread''s own. No foreign key, for there is no run 0; agui.verify looks after it.';
comment on column agui.session_state."key" is 'session_key.key.';
comment on column agui.session_state."version" is 'Numbers the documents of a key in its thread 1, 2, 3, …, whatever run they were saved at.';
comment on column agui.session_state."document" is 'The document, byte for byte; null: from this run on there is none, whatever runs before it have.';
comment on column agui.session_state."saved_at" is 'When it was saved.';

create table agui.snapshot (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "through_seq" bigint not null,
    "message_nos" int4range[] not null,
    "state" json not null,
    "interrupts" json not null,
    "lanes" json,
    "created_at" timestamp with time zone not null
);
comment on table agui.snapshot is 'What the lineage of a run meant once its events up to through_seq were applied. Can be deleted and made again at any time.';
comment on column agui.snapshot."through_seq" is 'seq of the last event of the run that is part of the snapshot.';
comment on column agui.snapshot."message_nos" is 'Its messages in order, as ranges of message.message_no.';
comment on column agui.snapshot."state" is 'The state that the agent and its UI share.';
comment on column agui.snapshot."interrupts" is 'The interrupts that wait for an answer, as a JSON array.';
comment on column agui.snapshot."lanes" is 'Chunk streams (TEXT_MESSAGE_CHUNK, …) that are open at through_seq, so that the fold can go on between two chunks; null: none.';

create table agui.thread (
    "thread_key" uuid not null,
    "scope" text not null,
    "thread_id" text not null,
    "created_at" timestamp with time zone not null
);
comment on table agui.thread is 'A conversation (AG-UI threadId) of a scope.';
comment on column agui.thread."thread_key" is 'agui.thread_key(scope, thread_id): 64 bits that hash the scope, then 64 bits that hash scope and thread id. The threads of a scope are one range of keys.';
comment on column agui.thread."scope" is 'The tenant or user that the thread belongs to; '''' when scopes are not used. A name, not a protection: that takes row-level security.';
comment on column agui.thread."thread_id" is 'threadId of the protocol, unique in its scope.';
comment on column agui.thread."created_at" is 'When the first event was appended, or session state or a checkpoint saved.';

create table agui.thread_activity (
    "thread_key" uuid not null,
    "scope_key" bigint not null,
    "archived" boolean not null,
    "active_at" timestamp with time zone not null,
    "title" text,
    "derived_title" text,
    "agent" text,
    "metadata" jsonb not null,
    "written_in" xid8,
    "writes" smallint not null
);
comment on table agui.thread_activity is 'What lists of threads need of each: when it was active, and what agui.set_thread sets. A run that begins or ends updates it, the events between do not.';
comment on column agui.thread_activity."scope_key" is 'The first 64 bits of thread_key, as a number: the hash of the scope.';
comment on column agui.thread_activity."archived" is 'Whether lists leave the thread out unless they are asked for it.';
comment on column agui.thread_activity."active_at" is 'When a run of the thread last began or ended, as agui.run has it; without runs, when the thread was made.';
comment on column agui.thread_activity."title" is 'The title that was set; null: none.';
comment on column agui.thread_activity."derived_title" is 'The beginning of the first user message, shown where no title is set; null: not known yet.';
comment on column agui.thread_activity."agent" is 'The agent that the thread belongs to; null: not set.';
comment on column agui.thread_activity."metadata" is 'What an application keeps with the thread, a JSON object.';
comment on column agui.thread_activity."written_in" is 'For agui.append: the transaction that set active_at last; null: it has done so for good.';
comment on column agui.thread_activity."writes" is 'How often that transaction has set it.';

create table agui.event (
    "scope" text not null,
    "thread_id" text not null,
    "run_id" text not null,
    "seq" bigint not null,
    "type" text not null,
    "recorded_at" timestamp with time zone not null,
    "payload" json not null,
    "thread_key" uuid not null
);
comment on table agui.event is 'The log, one row an event. To read a thread from a seq on, use agui.events: the view has to open every batch of the thread.';
comment on column agui.event."seq" is 'Position in the thread''s log: 1, 2, 3, … in commit order.';
comment on column agui.event."type" is 'type of the event, decoded.';
comment on column agui.event."recorded_at" is 'When the event was appended.';
comment on column agui.event."payload" is 'The event, byte for byte.';
comment on column agui.event."thread_key" is 'agui.thread_key(scope, thread_id), the key of the thread''s rows.';

create table agui.lag (
    "runs_to_compact" bigint,
    "compaction_lag" interval,
    "runs_to_repack" bigint,
    "repack_lag" interval,
    "running_runs" bigint,
    "stale_runs" bigint,
    "oldest_sign_of_life" interval,
    "quarantined_runs" bigint
);
comment on table agui.lag is 'What waits, in one row. Reads the queues of the jobs and the last batch of each run in progress. For monitoring: it shows counts and ages alone, and pg_monitor may read it. While row-level security is on, others than pg_monitor and operators have those of their scope.';
comment on column agui.lag."runs_to_compact" is 'Ended runs that compaction has not processed yet.';
comment on column agui.lag."compaction_lag" is 'How long ago the first of them ended; null: there is none.';
comment on column agui.lag."runs_to_repack" is 'Runs that ended longer ago than agui_internal.repack_after() and are not repacked yet.';
comment on column agui.lag."repack_lag" is 'How long ago the first of them ended; null: there is none.';
comment on column agui.lag."running_runs" is 'Runs in progress.';
comment on column agui.lag."stale_runs" is 'Those of them that gave no sign of life (a batch, or seen_at) within their lease.';
comment on column agui.lag."oldest_sign_of_life" is 'The longest that any of them has been silent; null: there is none.';
comment on column agui.lag."quarantined_runs" is 'Rows of agui.quarantine: runs that a job failed at and tries later.';

create table agui.quarantine (
    "job" text,
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "attempts" integer,
    "code" text,
    "error" text,
    "failed_at" timestamp with time zone,
    "next_attempt_at" timestamp with time zone,
    "thread_key" uuid,
    "run_no" integer
);
comment on table agui.quarantine is 'The runs that a job failed at, one row a job and run. The job tries them less and less often; compaction leaves the runs that go on from them, too. Where compaction failed twice, reads that would have to fold the run fail with UI022; its events can be read. agui.retry lets jobs try at once.';
comment on column agui.quarantine."job" is 'compact, compact_running, reap or repack.';
comment on column agui.quarantine."scope" is 'Scope of the thread.';
comment on column agui.quarantine."thread_id" is 'The thread.';
comment on column agui.quarantine."run_id" is 'The run.';
comment on column agui.quarantine."attempts" is 'How often the job has tried and failed.';
comment on column agui.quarantine."code" is 'SQLSTATE of the last failure; null: see error.';
comment on column agui.quarantine."error" is 'Why the last attempt failed; null: it ended without a word (killed, out of memory, out of time), or is in progress.';
comment on column agui.quarantine."failed_at" is 'When the last attempt failed or, without an error, when it began.';
comment on column agui.quarantine."next_attempt_at" is 'When the job tries again; null: with its next call.';
comment on column agui.quarantine."thread_key" is 'Key of the thread.';
comment on column agui.quarantine."run_no" is 'Number of the run in its thread.';

create table agui.setting (
    "name" text,
    "value" numeric,
    "unit" text,
    "default_value" numeric,
    "min_value" numeric,
    "max_value" numeric,
    "description" text
);
comment on table agui.setting is 'The settings of this database, leases and limits. agui.set_setting changes them.';
comment on column agui.setting."value" is 'What holds now, in the unit.';
comment on column agui.setting."unit" is 'seconds, bytes or count.';
comment on column agui.setting."default_value" is 'What holds unless somebody changes it.';
comment on column agui.setting."min_value" is 'The least value that it takes.';
comment on column agui.setting."max_value" is 'The greatest value that it takes.';
comment on column agui.setting."description" is 'What it does.';

create table agui.stats (
    "threads" bigint,
    "runs" bigint,
    "running_runs" bigint,
    "finished_runs" bigint,
    "failed_runs" bigint,
    "events" bigint,
    "repacked_runs" bigint,
    "compacted_log_bytes" bigint,
    "log_disk_bytes" bigint,
    "snapshot_disk_bytes" bigint,
    "tree_disk_bytes" bigint,
    "session_disk_bytes" bigint,
    "erased_threads" bigint
);
comment on table agui.stats is 'How much there is, in one row. Reads the runs and threads once and nothing of the log. For monitoring: it shows counts alone, and pg_monitor may read it. While row-level security is on, others than pg_monitor and operators have the counts of their scope, and no bytes on disk.';
comment on column agui.stats."threads" is 'Threads.';
comment on column agui.stats."runs" is 'Runs.';
comment on column agui.stats."running_runs" is 'Runs in progress.';
comment on column agui.stats."finished_runs" is 'Runs that ended with RUN_FINISHED.';
comment on column agui.stats."failed_runs" is 'Runs that ended with RUN_ERROR.';
comment on column agui.stats."events" is 'Events of the runs that have ended.';
comment on column agui.stats."repacked_runs" is 'Runs whose batches agui.repack has joined.';
comment on column agui.stats."compacted_log_bytes" is 'Bytes that the batches of the compacted runs take as stored.';
comment on column agui.stats."log_disk_bytes" is 'Bytes of the log on disk, with its index and what waits for vacuum.';
comment on column agui.stats."snapshot_disk_bytes" is 'Bytes of the snapshots and their messages on disk, likewise.';
comment on column agui.stats."tree_disk_bytes" is 'Bytes of threads and runs on disk, likewise.';
comment on column agui.stats."session_disk_bytes" is 'Bytes of session state and checkpoints on disk, likewise.';
comment on column agui.stats."erased_threads" is 'Erased threads that are not allowed again.';

create table agui.tenant (
    "role_name" name,
    "scope" text,
    "kind" text
);
comment on table agui.tenant is 'Which role has which scope while row-level security is on: for operators and the owner all mappings, for others their own.';
comment on column agui.tenant."role_name" is 'The role.';
comment on column agui.tenant."scope" is 'Its scope; null: see kind.';
comment on column agui.tenant."kind" is 'tenant: it has the scope. pool: it has the scope that the setting agui.scope names. operator: it has all scopes.';

create table agui.activity (
    "message_id" text,
    "activity_type" text,
    "content" json not null,
    "run_id" text,
    "first_seq" bigint,
    "last_seq" bigint,
    "started_at" timestamp with time zone,
    "updated_at" timestamp with time zone
);
comment on table agui.activity is 'An activity of a conversation: its id, type and content, the run that began it, and its first and last event with their times.';

create table agui.append_result (
    "call_no" integer not null,
    "last_seq" bigint,
    "error_code" text,
    "error" text,
    "detail" text,
    "hint" text
);
comment on table agui.append_result is 'What became of one of the calls of agui.append_many, which are numbered from 1: the seq of its last event; or, when it was refused, the SQLSTATE and what is wrong, with last_seq null.';

create table agui.attachment (
    "run_id" text,
    "status" text,
    "running" text[] not null,
    "seq" bigint not null,
    "recorded_at" timestamp with time zone,
    "events" json not null
);
comment on table agui.attachment is 'What agui.attach returns: the run that was attached to (null: the thread is not there yet) and its status now, the runs of the thread that are in progress now, the position to follow from (the seq up to which the log has been taken into account, and when that event was appended; 0 and null: nothing yet), and the history up to there, a JSON array of events.';

create table agui.branch (
    "run_id" text not null,
    "runs" integer not null,
    "forked_from" text,
    "status" text not null,
    "last_seq" bigint,
    "is_head" boolean not null
);
comment on table agui.branch is 'A branch of a thread: its last run, the number of runs from the root to it, the last run that it shares with another branch (null: none), status and last seq of its last run, and whether a run that names no parent goes on from here.';

create table agui.chain_head (
    "scope" text,
    "thread_id" text,
    "seq" bigint,
    "hash" bytea
);
comment on table agui.chain_head is 'The last link of a chained thread: the seq of the last event that it is over, and its hash (SHA-256, 32 octets).';

create table agui.checkpoint_row (
    "checkpoint_no" bigint not null,
    "namespace" text not null,
    "checkpoint_id" text not null,
    "parent_id" text,
    "saved_at" timestamp with time zone not null,
    "document" json not null
);
comment on table agui.checkpoint_row is 'A checkpoint: its number in its thread, in commit order; its namespace and id; the checkpoint that it goes on from (null: none); when it was saved; and its very bytes.';

create table agui.event_row (
    "seq" bigint not null,
    "run_id" text not null,
    "type" text not null,
    "recorded_at" timestamp with time zone not null,
    "payload" json not null
);
comment on table agui.event_row is 'An event of the log: its position in the thread, its run, its type, when it was appended, and its very bytes.';

create table agui.history_row (
    "seq" bigint not null,
    "last_seq" bigint not null,
    "run_id" text not null,
    "type" text not null,
    "event_count" bigint not null,
    "created_at" timestamp with time zone not null,
    "completed_at" timestamp with time zone,
    "payload" json not null
);
comment on table agui.history_row is 'An event of a thread''s history, or several that were joined: seq and last_seq of the first and the last of them, how many they are, when the first and (null: a single one) the last was appended, and the event. One that was joined before it was appended says number and times itself.';

create table agui.keep_alive_row (
    "call_no" integer not null,
    "status" text not null,
    "stop_requested_at" timestamp with time zone,
    "stop_reason" text,
    "cut_off_reason" text
);
comment on table agui.keep_alive_row is 'What the writer of a run should know, as agui.keep_alive answers: call_no says which of the runs asked for it is, from 1; its status; whether it shall stop, and why; and, when it was ended in its writer''s place, why.';

create table agui.message_row (
    "position" integer not null,
    "message_id" text,
    "role" text,
    "message" json not null
);
comment on table agui.message_row is 'A message of a conversation: its place (from 1), its id and role (null where it has none), and the message as AG-UI clients know it.';

create table agui.poll_row (
    "thread_no" integer not null,
    "run_id" text,
    "status" text,
    "first_seq" bigint,
    "n" integer,
    "recorded_at" timestamp with time zone,
    "earlier_us" integer[],
    "events" json,
    "problem" text
);
comment on table agui.poll_row is 'Events that a follower has not seen yet, as agui.poll returns them: a JSON array of n events of one run, with the seqs from first_seq on. thread_no says which of the threads asked for it is, from 1. status is that of the run now, which may have ended further on in the log. recorded_at is when the last of the events was appended; earlier_us, where not null, says for each how many microseconds before that. Or, with all of that null, an SQLSTATE that says why this thread cannot be followed from there: UI017 the log was rewound, UI014 the thread was erased. A row with thread_no alone says that the thread has more than fits in the answer.';

create table agui.run_info (
    "depth" integer not null,
    "run_id" text not null,
    "parent_run_id" text,
    "status" text not null,
    "first_seq" bigint not null,
    "last_seq" bigint,
    "started_at" timestamp with time zone not null,
    "ended_at" timestamp with time zone,
    "run_no" integer not null
);
comment on table agui.run_info is 'A run as the functions of the tree show it. depth counts the runs from the root to it (the root has 1); last_seq and ended_at are null while it is running; run_no numbers the thread''s runs as they began.';

create table agui.run_status (
    "run_id" text not null,
    "parent_run_id" text,
    "status" text not null,
    "first_seq" bigint not null,
    "last_seq" bigint not null,
    "started_at" timestamp with time zone not null,
    "ended_at" timestamp with time zone,
    "alive_at" timestamp with time zone not null,
    "is_stale" boolean not null,
    "stop_requested_at" timestamp with time zone,
    "stop_reason" text,
    "cut_off_reason" text
);
comment on table agui.run_status is 'A run and its parent (null: a root): running, finished or failed; its last seq so far; its last sign of life, an event or agui.keep_alive; whether that is longer ago than the lease although it is running; who asked it to stop, when and why; and, when it was ended in its writer''s place, why.';

create table agui.session_document (
    "key" text not null,
    "run_id" text,
    "version" bigint not null,
    "saved_at" timestamp with time zone not null,
    "document" json
);
comment on table agui.session_document is 'Session state under a key: the run that it was saved at (null: none, it is the thread''s own), its version, when it was saved, and its very bytes. A null document says that it was removed.';

create table agui.session_message (
    "seq" bigint,
    "type" text not null,
    "message_id" text,
    "run_id" text,
    "created_at" timestamp with time zone,
    "payload" json not null
);
comment on table agui.session_message is 'A message of a session: user, assistant and system {content}, tool_use {id, name, input}, tool_result {tool_use_id, content}, error {message, code}. seq, run and time are those of the event that brought it; message_id is the AG-UI message it is, or is a part of.';

create table agui.session_run (
    "run_id" text not null,
    "events" json not null
);
comment on table agui.session_run is 'A run that messages of a session stand for: what agui.append takes.';

create table agui.thread_page_row (
    "threads" agui.thread_row[],
    "next_cursor" text
);
comment on table agui.thread_page_row is 'A page of threads, newest activity first, and the cursor that the next page is asked for with. next_cursor is null where the list ends; a page that is short, or empty, is the last one only then.';

create table agui.thread_row (
    "thread_id" text not null,
    "title" text,
    "agent" text,
    "metadata" jsonb not null,
    "archived" boolean not null,
    "created_at" timestamp with time zone not null,
    "active_at" timestamp with time zone not null,
    "head_run_id" text,
    "status" text,
    "is_stale" boolean not null,
    "runs" integer not null,
    "branches" integer not null,
    "cursor" text not null
);
comment on table agui.thread_row is 'A thread in a list: its title (the one that was set, else the beginning of the first user message, else null), agent (null: not set) and metadata; whether it is archived; when it was made, and when a run of it last began or ended; the head, its status, and whether it is in progress without a sign of life within the lease (null, null and false while there are no runs); the number of runs and of branches; and the place of the thread in lists, from which agui.threads goes on.';

create table agui.tool_call (
    "tool_call_id" text,
    "name" text,
    "arguments" text,
    "arguments_json" json,
    "result" json,
    "parent_message_id" text,
    "run_id" text,
    "first_seq" bigint,
    "last_seq" bigint,
    "started_at" timestamp with time zone,
    "ended_at" timestamp with time zone,
    "status" text not null
);
comment on table agui.tool_call is 'A tool call: what was called, with which arguments, and what came of it. arguments is their text as far as it came (with JSON''s escapes where it holds what text cannot: \u0000 or half an emoji), arguments_json the same as JSON (null: it is none), result the content of the tool''s message (null: none so far). first_seq and last_seq are its first and last event. status: streaming (arguments are coming), called (they are complete, there is no result yet), completed, or cut_off (its run failed, or ended before the arguments were complete, and there is no result). ended_at is when the result came, or when the call was cut off.';

create table agui.verify_row (
    "run_id" text,
    "problem" text not null,
    "severity" text not null
);
comment on table agui.verify_row is 'What agui.verify found, and in which run; run_id is null where no run can be named. severity: ''damage'' is what the database should not hold; ''note'' is what the agent or its writer did against the protocol, kept as it was appended.';

create function agui.abandon(thread_id text, run_id text, reason text DEFAULT 'its writer is gone'::text, imported boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.activities(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.activity language sql as '';
create function agui.append(thread_id text, run_id text, events json, after_seq bigint DEFAULT NULL::bigint, input json DEFAULT NULL::json, parent_run_id text DEFAULT NULL::text, parallel boolean DEFAULT false, strict boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.append_many(thread_ids text[], run_ids text[], events json[], after_seqs bigint[] DEFAULT NULL::bigint[], inputs json[] DEFAULT NULL::json[], parent_run_ids text[] DEFAULT NULL::text[], parallel boolean[] DEFAULT NULL::boolean[], strict boolean DEFAULT false, wait boolean DEFAULT true, durable boolean DEFAULT true, scopes text[] DEFAULT NULL::text[]) returns SETOF agui.append_result language sql as '';
create function agui.attach(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, shape text DEFAULT 'snapshot'::text, scope text DEFAULT ''::text) returns agui.attachment language sql as '';
create function agui.branches(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.branch language sql as '';
create function agui.checkpoint_lineage(thread_id text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text) returns SETOF agui.checkpoint_row language sql as '';
create function agui.checkpoints(thread_id text, namespace text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.checkpoint_row language sql as '';
create function agui.children(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.compact_events(events json, shape text DEFAULT 'stream'::text) returns json language sql as '';
create function agui.disable_chain(scope text DEFAULT NULL::text) returns boolean language sql as '';
create function agui.enable_chain(scope text DEFAULT NULL::text) returns boolean language sql as '';
create function agui.erase(thread_id text, reason text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.erasure language sql as '';
create function agui.events(thread_id text, run_id text DEFAULT NULL::text, after_seq bigint DEFAULT 0, lineage boolean DEFAULT true, scope text DEFAULT ''::text) returns SETOF agui.event_row language sql as '';
create function agui.get_thread(thread_id text, scope text DEFAULT ''::text) returns agui.thread_row language sql as '';
create function agui.head(thread_id text, scope text DEFAULT ''::text) returns text language sql as '';
create function agui.heads(scope text DEFAULT NULL::text) returns SETOF agui.chain_head language sql as '';
create function agui.history(thread_id text, run_id text DEFAULT NULL::text, after_seq bigint DEFAULT 0, types text[] DEFAULT NULL::text[], since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, max_rows integer DEFAULT 100, compressed boolean DEFAULT true, max_bytes integer DEFAULT NULL::integer, max_idle interval DEFAULT NULL::interval, lineage boolean DEFAULT true, scope text DEFAULT ''::text) returns SETOF agui.history_row language sql as '';
create function agui.import_events(thread_id text, run_id text, events json, after_seq bigint DEFAULT NULL::bigint, input json DEFAULT NULL::json, parent_run_id text DEFAULT NULL::text, parallel boolean DEFAULT false, strict boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.interrupts(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.json_patch(doc jsonb, patch jsonb) returns jsonb language sql as '';
create function agui.keep_alive(thread_ids text[], run_ids text[], detach boolean DEFAULT false, scopes text[] DEFAULT NULL::text[]) returns SETOF agui.keep_alive_row language sql as '';
create function agui.lift_erasure(thread_id text, scope text DEFAULT ''::text) returns boolean language sql as '';
create function agui.lineage(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.load_checkpoint(thread_id text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text) returns SETOF agui.checkpoint_row language sql as '';
create function agui.load_session(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.load_session_state(thread_id text, key text, run_id text DEFAULT NULL::text, version bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text) returns SETOF agui.session_document language sql as '';
create function agui.load_sessions(thread_ids text[], run_ids text[] DEFAULT NULL::text[], scope text DEFAULT ''::text) returns json language sql as '';
create function agui.map_operator(role_name name) returns void language sql as '';
create function agui.map_pool(role_name name) returns void language sql as '';
create function agui.map_tenant(role_name name, scope text) returns void language sql as '';
create function agui.merge_base(thread_id text, run_a text, run_b text, scope text DEFAULT ''::text) returns text language sql as '';
create function agui.messages(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.message_row language sql as '';
create function agui.poll(thread_ids text[], after_seqs bigint[], after_times timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], max_rows integer DEFAULT 100, page_bytes integer DEFAULT 16777216, scopes text[] DEFAULT NULL::text[]) returns SETOF agui.poll_row language sql as '';
create function agui.rebuild_snapshots(thread_id text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.remove_session_state(thread_id text, key text, run_id text DEFAULT NULL::text, expected_version bigint DEFAULT 0, overwrite boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.replay(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, shape text DEFAULT 'snapshot'::text, scope text DEFAULT ''::text) returns SETOF json language sql as '';
create function agui.request_stop(thread_id text, run_id text DEFAULT NULL::text, reason text DEFAULT NULL::text, scope text DEFAULT ''::text) returns integer language sql as '';
create function agui.restore(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.retry(job text DEFAULT NULL::text, thread_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.runs(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.save_checkpoint(thread_id text, checkpoint_id text, document json, parent_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.save_session(session json, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.save_session_state(thread_id text, key text, document json, run_id text DEFAULT NULL::text, expected_version bigint DEFAULT 0, overwrite boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.save_sessions(sessions json, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.session_messages(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text) returns SETOF agui.session_message language sql as '';
create function agui.session_runs(thread_id text, messages json, run_prefix text DEFAULT 'session-run-'::text) returns SETOF agui.session_run language sql as '';
create function agui.session_states(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.session_document language sql as '';
create function agui.session_versions(thread_id text, key text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.session_document language sql as '';
create function agui.set_setting(name text, value text) returns void language sql as '';
create function agui.set_thread(thread_id text, title text DEFAULT NULL::text, agent text DEFAULT NULL::text, archived boolean DEFAULT NULL::boolean, metadata jsonb DEFAULT NULL::jsonb, create_if_missing boolean DEFAULT false, scope text DEFAULT ''::text) returns agui.thread_row language sql as '';
create function agui.state(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.status(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.run_status language sql as '';
create function agui.thread_key(scope text, thread_id text) returns uuid language sql as '';
create function agui.thread_page(agent text DEFAULT NULL::text, archived boolean DEFAULT false, title text DEFAULT NULL::text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, status text DEFAULT NULL::text, metadata jsonb DEFAULT NULL::jsonb, max_rows integer DEFAULT 50, cursor text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.thread_page_row language sql as '';
create function agui.threads(agent text DEFAULT NULL::text, archived boolean DEFAULT false, title text DEFAULT NULL::text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, status text DEFAULT NULL::text, metadata jsonb DEFAULT NULL::jsonb, max_rows integer DEFAULT 50, cursor text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.thread_row language sql as '';
create function agui.tool_calls(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text) returns SETOF agui.tool_call language sql as '';
create function agui.unmap_role(role_name name) returns boolean language sql as '';
create function agui.verify(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.verify_row language sql as '';
