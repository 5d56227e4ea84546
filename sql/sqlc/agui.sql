-- The schema agui as sqlc (https://sqlc.dev) reads it, to be listed under "schema" in sqlc.yaml. Not to be run: functions have no bodies, and
-- views and the types of results are declared as tables, which is how sqlc knows their columns.
-- Written from the catalog of an installed schema: make golden

create schema agui;

create table agui.agent_error (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "status" integer not null,
    "content_type" text not null,
    "body" bytea not null,
    "recorded_at" timestamp with time zone not null
);
comment on table agui.agent_error is 'What the agent of a run answered in place of a stream of events (agui.keep_agent_error): one row for a run, the last answer.';
comment on column agui.agent_error."status" is 'The status of the answer (HTTP).';
comment on column agui.agent_error."content_type" is 'Its Content-Type; empty: none.';
comment on column agui.agent_error."body" is 'The first 4 KB of its body, in whatever encoding it came.';
comment on column agui.agent_error."recorded_at" is 'When it was stored.';

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
comment on column agui.batch."recorded_at" is 'When its last event was appended; never before the previous batch of the thread.';
comment on column agui.batch."n" is 'Number of events in the batch.';
comment on column agui.batch."run_no" is 'The run that the events belong to. No foreign key, because it would slow down every append; agui.verify checks it.';
comment on column agui.batch."events" is 'JSON array of the events as they were appended. json and not jsonb, so that every byte of an event is preserved, also what jsonb cannot hold.';
comment on column agui.batch."earlier_us" is 'For each event, how many microseconds before recorded_at it was appended, in a batch that agui.repack joined or agui.import_events made; null: all at once.';
comment on column agui.batch."text_bytes" is 'Size of the text of events in bytes if it may be compressed, so that a page of the log can be limited without decompressing it; null: about the stored size.';
comment on column agui.batch."hash" is 'In a chained thread (agui.enable_chain): the hash of the last link of the batch (agui_internal.chain_link); null: the thread is not chained, or was not when the batch was appended.';
comment on column agui.batch."links" is 'In a chained batch that agui.repack joined: the number of events in each of its links; null: the batch is one link.';

create table agui.channel (
    "thread_key" uuid not null,
    "channel_no" integer not null,
    "namespace" text not null,
    "name" text not null,
    "parts" integer not null
);
comment on table agui.channel is 'The channels of the graphs of a thread. A graph keeps its state in channels, each with a value and a version.';
comment on column agui.channel."channel_no" is 'The channels of a thread numbered 1, 2, 3, …';
comment on column agui.channel."namespace" is 'The namespace of the checkpoints that the channel belongs to.';
comment on column agui.channel."name" is 'The name of the channel, unique in its namespace.';
comment on column agui.channel."parts" is 'Number of its rows in agui.channel_part.';

create table agui.channel_part (
    "thread_key" uuid not null,
    "channel_no" integer not null,
    "part_no" integer not null,
    "print" bigint not null,
    "body" json not null
);
comment on table agui.channel_part is 'The elements of the arrays in a channel, each stored once: versions of a value, and writes, refer to them. So a list that grows takes the bytes of its elements, not of each of its versions.';
comment on column agui.channel_part."channel_no" is 'The channel that the part belongs to.';
comment on column agui.channel_part."part_no" is 'The parts of a channel numbered 1, 2, 3, … in the order in which they were stored.';
comment on column agui.channel_part."print" is 'agui_internal.part_print of the key of the thread, the channel and the body, by which an equal part is found. The bodies are compared as well.';
comment on column agui.channel_part."body" is 'The element, byte for byte.';

create table agui.channel_value (
    "thread_key" uuid not null,
    "channel_no" integer not null,
    "version" text not null,
    "type" text,
    "part_nos" int4range[],
    "body" json,
    "bytes" bytea
);
comment on table agui.channel_value is 'The values of the channels, each version once. The document of a checkpoint says which version of each channel belongs to it (its member channel_versions).';
comment on column agui.channel_value."channel_no" is 'The channel that has the value.';
comment on column agui.channel_value."version" is 'The version, as text.';
comment on column agui.channel_value."type" is 'How the graph encoded a value that is no JSON; null: it is JSON.';
comment on column agui.channel_value."part_nos" is 'An array: its elements in order, as ranges of channel_part.part_no.';
comment on column agui.channel_value."body" is 'Any other JSON value, byte for byte.';
comment on column agui.channel_value."bytes" is 'A value that is no JSON.';

create table agui.checkpoint (
    "thread_key" uuid not null,
    "checkpoint_no" bigint not null,
    "namespace" text not null,
    "checkpoint_id" text not null,
    "parent_no" bigint,
    "run_id" text,
    "document" json,
    "metadata" json,
    "saved_at" timestamp with time zone not null
);
comment on table agui.checkpoint is 'The state of a workflow engine or a graph at some point of a conversation, which continues from the state in its parent. Texts compare by code point, so that ids that begin with a time are in the order of time.';
comment on column agui.checkpoint."checkpoint_no" is 'The checkpoints of a thread numbered 1, 2, 3, … in commit order. One of agui.put_checkpoint gets its number when it is first named, also by a child or by a write.';
comment on column agui.checkpoint."namespace" is 'Separates the checkpoints of several workflows of a thread; empty by default.';
comment on column agui.checkpoint."checkpoint_id" is 'The name that the engine gave it, unique in its namespace.';
comment on column agui.checkpoint."parent_no" is 'The checkpoint that it continues from, in the same namespace; null: a root. It has a smaller number, unless agui.put_checkpoint stored it later than its child.';
comment on column agui.checkpoint."run_id" is 'The run that the engine was working on, as the caller named it; null: none was named.';
comment on column agui.checkpoint."document" is 'The checkpoint, byte for byte. Null: its writes, or a child, came before the checkpoint, which does not exist for readers until agui.put_checkpoint stores it.';
comment on column agui.checkpoint."metadata" is 'What a graph notes about the checkpoint, an object, byte for byte. Null: the checkpoint is from agui.save_checkpoint and cannot change.';
comment on column agui.checkpoint."saved_at" is 'When it was saved.';

create table agui.checkpoint_write (
    "thread_key" uuid not null,
    "checkpoint_no" bigint not null,
    "task_id" text not null,
    "place" integer not null,
    "task_path" text not null,
    "channel_no" integer not null,
    "type" text,
    "part_nos" int4range[],
    "body" json,
    "bytes" bytea
);
comment on table agui.checkpoint_write is 'What the tasks after a checkpoint wrote to channels, before the next checkpoint has it: after a crash a graph does not repeat the tasks that succeeded.';
comment on column agui.checkpoint_write."checkpoint_no" is 'The checkpoint that the task continued from.';
comment on column agui.checkpoint_write."task_id" is 'The task, as the graph names it.';
comment on column agui.checkpoint_write."place" is 'The place in the writes of the task, from 0 on. Negative: a special channel, such as the one for errors, which a later call overwrites.';
comment on column agui.checkpoint_write."task_path" is 'The path of the task in the graph. Writes apply in the order (task_path, task_id, place).';
comment on column agui.checkpoint_write."channel_no" is 'The channel that the task wrote to.';
comment on column agui.checkpoint_write."type" is 'How the graph encoded a value that is no JSON; null: it is JSON.';
comment on column agui.checkpoint_write."part_nos" is 'An array: its elements in order, as ranges of channel_part.part_no.';
comment on column agui.checkpoint_write."body" is 'Any other JSON value, byte for byte.';
comment on column agui.checkpoint_write."bytes" is 'A value that is no JSON.';

create table agui.consumer (
    "consumer_key" uuid not null,
    "scope" text not null,
    "is_all" boolean not null,
    "consumer" text not null,
    "position" text,
    "created_at" timestamp with time zone not null,
    "moved_at" timestamp with time zone not null,
    "moved_by" text not null
);
comment on table agui.consumer is 'Named readers of what changed, with their places (agui.consume, agui.move_consumer). The function agui.consumers also says how far they are behind.';
comment on column agui.consumer."consumer_key" is 'Identifies it in agui_internal.consumer_thread.';
comment on column agui.consumer."scope" is 'The scope that it reads; empty for all scopes.';
comment on column agui.consumer."is_all" is 'Whether it reads all scopes.';
comment on column agui.consumer."consumer" is 'Its name, which is its own within the scope.';
comment on column agui.consumer."position" is 'It has processed the changes up to here; null: none.';
comment on column agui.consumer."created_at" is 'When its place was first noted.';
comment on column agui.consumer."moved_at" is 'When its place was last noted.';
comment on column agui.consumer."moved_by" is 'The role that was logged in at that time.';

create table agui.erasure (
    "erased_key" uuid not null,
    "erased_at" timestamp with time zone not null,
    "erased_by" text not null,
    "reason" text,
    "runs" integer not null,
    "events" bigint not null,
    "allowed_at" timestamp with time zone,
    "allowed_by" text,
    "thread_uid" uuid,
    "erased_in" xid8
);
comment on table agui.erasure is 'The tombstones of erased threads: when, by whom and why, without their names. Writes to a thread are refused until allowed_at is set.';
comment on column agui.erasure."erased_key" is 'A salted hash of the key of the thread (agui_internal.erasure_key), which identifies the thread to a caller who names it. Without the salt no name can be tested against it. The first half depends on the scope only, as in thread_key.';
comment on column agui.erasure."erased_at" is 'When it was erased.';
comment on column agui.erasure."erased_by" is 'The role that was logged in.';
comment on column agui.erasure."reason" is 'The reason that the caller gave.';
comment on column agui.erasure."runs" is 'Number of runs that it had.';
comment on column agui.erasure."events" is 'Number of events that it had.';
comment on column agui.erasure."allowed_at" is 'When agui.lift_erasure permitted writes; null: they are refused.';
comment on column agui.erasure."allowed_by" is 'The role that was logged in at that time.';
comment on column agui.erasure."thread_uid" is 'The random id that the thread had (agui.thread), by which those recognize it who copied the thread; null: as for erased_in, or it had nothing but a claim.';
comment on column agui.erasure."erased_in" is 'The transaction that erased it, for readers of changes; null: it was erased before this was noted, or in another database.';

create table agui.hold (
    "thread_key" uuid not null,
    "reason" text not null,
    "held_at" timestamp with time zone not null,
    "held_by" text not null
);
comment on table agui.hold is 'Threads that must not be erased (agui.set_hold). The view agui.held_thread shows their names.';
comment on column agui.hold."reason" is 'Why it is held.';
comment on column agui.hold."held_at" is 'Since when.';
comment on column agui.hold."held_by" is 'The role that was logged in.';

create table agui.input_part (
    "thread_key" uuid not null,
    "kind" text not null,
    "part_no" integer not null,
    "print" bigint not null,
    "bytes" integer not null,
    "message_id" text,
    "body" json not null
);
comment on table agui.input_part is 'Parts of the inputs of a thread, each stored once: run_input.sections refers to them. So a conversation that is sent with each of its runs takes the bytes of its messages, not of each input.';
comment on column agui.input_part."kind" is 'The member of the input that the part is from: message (an element of messages), state (an object with one member of the state), tools or context (the whole value).';
comment on column agui.input_part."part_no" is 'The parts of a kind numbered 1, 2, 3, … in the order in which they were stored. So a history that grows is one range.';
comment on column agui.input_part."print" is 'agui_internal.part_print of the key of the thread, the kind and the body, by which an equal part is found. The bodies are compared as well.';
comment on column agui.input_part."bytes" is 'Size of the text in bytes, as folds count it: a backslash, \u0000 and half of a surrogate pair count 7.';
comment on column agui.input_part."message_id" is 'id of a message, as the fold decodes it; null if it has none, or if the part is no message.';
comment on column agui.input_part."body" is 'The part, byte for byte.';

create table agui.message_text (
    "thread_key" uuid not null,
    "print" bigint not null,
    "run_no" integer not null,
    "seq" bigint not null,
    "said_at" timestamp with time zone not null,
    "role" text not null,
    "message_id" text,
    "text" text not null,
    "words" tsvector not null
);
comment on table agui.message_text is 'The texts of messages, each once in its thread: those of users, assistants and tools, of all branches. Empty unless agui.enable_search was called; agui.project() keeps it. agui.search reads it.';
comment on column agui.message_text."print" is 'Hash of role, message id and text, which identifies the row in its thread.';
comment on column agui.message_text."run_no" is 'The run that brought the text first, by an event or in its input.';
comment on column agui.message_text."seq" is 'seq of the event with which the message began; for an input, of the first event of the run.';
comment on column agui.message_text."said_at" is 'When that event was recorded.';
comment on column agui.message_text."role" is 'user, assistant or tool.';
comment on column agui.message_text."message_id" is 'id of the message; null: it has none.';
comment on column agui.message_text."text" is 'Its text, the first 100,000 characters; the parts of a content are separated by line ends.';
comment on column agui.message_text."words" is 'What is searched: the words in the language of agui_internal.search, and two words that no text has, for the scope and the role. So a tenant’s common word is as fast to find as a rare one.';

create table agui.message_version (
    "thread_key" uuid not null,
    "message_no" integer not null,
    "part_no" integer,
    "message_id" text,
    "role" text,
    "body" json
);
comment on table agui.message_version is 'Versions of messages that snapshots refer to. A version is written once and shared by all snapshots and branches that have it. The view agui.message has the text of all.';
comment on column agui.message_version."message_no" is 'Number of the version in its thread.';
comment on column agui.message_version."part_no" is 'The part of inputs (agui.input_part of the kind message) that has the same text, which is not stored twice; null: body has it. No foreign key, because it would need the kind in each row; agui.verify checks it.';
comment on column agui.message_version."message_id" is 'id of the message, decoded; null if it has none.';
comment on column agui.message_version."role" is 'role of the message, decoded; null if it has none.';
comment on column agui.message_version."body" is 'The message in the form that AG-UI clients use; null: part_no has it.';

create table agui.projected_call (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "call_id" text not null,
    "place" integer not null,
    "tool" text,
    "started_at" timestamp with time zone,
    "is_complete" boolean,
    "argument_bytes" bigint,
    "result_at" timestamp with time zone,
    "result_bytes" bigint,
    "error" text,
    "is_answer" boolean not null
);
comment on table agui.projected_call is 'The tool calls of a run, and the results that it brought: a row for each call id. A call whose result comes with a later run has a row in both.';
comment on column agui.projected_call."call_id" is 'toolCallId.';
comment on column agui.projected_call."place" is 'The call ids of a run numbered 1, 2, 3, … in the order in which they came.';
comment on column agui.projected_call."tool" is 'Name of the function; null: the run brought the result only.';
comment on column agui.projected_call."started_at" is 'When the call began.';
comment on column agui.projected_call."is_complete" is 'Whether its arguments ended.';
comment on column agui.projected_call."argument_bytes" is 'Size of its arguments in bytes, as JSON writes them.';
comment on column agui.projected_call."result_at" is 'When the result came: its last, or the beginning of the run whose input has it; null: no result came with this run.';
comment on column agui.projected_call."result_bytes" is 'Size of the content of the result in bytes, as JSON writes it.';
comment on column agui.projected_call."error" is 'What failed, its first 1000 characters (agui_internal.tool_error); null: nothing did.';
comment on column agui.projected_call."is_answer" is 'Whether the input of the run brought the result, not an event.';

create table agui.projected_interrupt (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "place" integer not null,
    "interrupt_id" text,
    "reason" text,
    "message" text,
    "tool_call_id" text,
    "asked_at" timestamp with time zone not null,
    "expires_at" timestamp with time zone,
    "is_open" boolean,
    "is_call" boolean,
    "arguments" text
);
comment on table agui.projected_interrupt is 'The interrupts with which a run ended: a row for each.';
comment on column agui.projected_interrupt."place" is 'The interrupts of a run numbered 1, 2, 3, …, as its agent listed them.';
comment on column agui.projected_interrupt."interrupt_id" is 'id of the interrupt; null: it has none.';
comment on column agui.projected_interrupt."reason" is 'Why the agent asks, as a word; null: not said.';
comment on column agui.projected_interrupt."message" is 'The question, its first 1000 characters; null: none.';
comment on column agui.projected_interrupt."tool_call_id" is 'The tool call that waits; null: none.';
comment on column agui.projected_interrupt."asked_at" is 'When RUN_FINISHED was recorded.';
comment on column agui.projected_interrupt."expires_at" is 'Until when an answer counts; null: no limit.';
comment on column agui.projected_interrupt."is_open" is 'Whether it waits for an answer, or will if the run in progress fails (agui_internal.may_wait), as of the last call of the job; null: not known yet, in rows of a store that did not have the column, and in calls that the job is to look at (agui_internal.settle_calls).';
comment on column agui.projected_interrupt."is_call" is 'Whether it is a tool call (tool_call_id) to which the run gave no result; null: it is an interrupt.';
comment on column agui.projected_interrupt."arguments" is 'Of a call that waits: its arguments, their first 1000 characters; null: it does not, as far as the job knows.';

create table agui.projected_run (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "changed_in" xid8,
    "events" bigint not null,
    "bytes" bigint not null,
    "first_token_at" timestamp with time zone,
    "error_code" text,
    "error_message" text
);
comment on table agui.projected_run is 'What agui.project() found in the log of a run that has ended: a row for each.';
comment on column agui.projected_run."changed_in" is 'run.changed_in of the run as it was read.';
comment on column agui.projected_run."events" is 'Number of its events, also those after its end.';
comment on column agui.projected_run."bytes" is 'Size of the text of its events in bytes.';
comment on column agui.projected_run."first_token_at" is 'When the first piece of a text message was recorded; null: there is none.';
comment on column agui.projected_run."error_code" is 'code of RUN_ERROR; null: none.';
comment on column agui.projected_run."error_message" is 'message of RUN_ERROR, its first 1000 characters; null: none.';

create table agui.projected_usage (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "place" integer not null,
    "provider" text,
    "model" text,
    "input_tokens" bigint,
    "output_tokens" bigint,
    "total_tokens" bigint,
    "reasoning_tokens" bigint,
    "cached_input_tokens" bigint,
    "cache_write_input_tokens" bigint
);
comment on table agui.projected_usage is 'The tokens that a run used, as its last end reports them: a row for each entry. See agui.model_usage.';
comment on column agui.projected_usage."place" is 'The entries numbered 1, 2, 3, …';
comment on column agui.projected_usage."provider" is 'Who runs the model; null: not named.';
comment on column agui.projected_usage."model" is 'The model; null: not named.';
comment on column agui.projected_usage."input_tokens" is 'Tokens of the prompt; null: not reported.';
comment on column agui.projected_usage."output_tokens" is 'Tokens of the answer; null: not reported.';
comment on column agui.projected_usage."total_tokens" is 'As reported, else input_tokens plus output_tokens.';
comment on column agui.projected_usage."reasoning_tokens" is 'A part of output_tokens.';
comment on column agui.projected_usage."cached_input_tokens" is 'A part of input_tokens.';
comment on column agui.projected_usage."cache_write_input_tokens" is 'A part of input_tokens.';

create table agui.retention (
    "scope" text not null,
    "is_all" boolean not null,
    "action" text not null,
    "older_than" interval,
    "set_at" timestamp with time zone not null,
    "set_by" text not null
);
comment on table agui.retention is 'What happens to threads without activity (agui.set_retention). For each action, the rule of a scope comes before the rule for all scopes. agui.apply_retention obeys them.';
comment on column agui.retention."scope" is 'The scope; empty for all scopes.';
comment on column agui.retention."is_all" is 'Whether the rule is for all scopes.';
comment on column agui.retention."action" is 'archive: lists leave the thread out. remove_checkpoints: its checkpoints are removed, its log stays. erase: it is erased (agui.erase).';
comment on column agui.retention."older_than" is 'How long nothing was appended to the thread or saved in it; null: the action is never done.';
comment on column agui.retention."set_at" is 'When the rule was set.';
comment on column agui.retention."set_by" is 'The role that was logged in.';

create table agui.run (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "parent_no" integer,
    "parent_given" boolean not null,
    "run_id" text not null,
    "status" text not null,
    "first_seq" bigint not null,
    "last_seq" bigint,
    "end_seq" bigint,
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
    "repacked_at" timestamp with time zone,
    "changed_in" xid8,
    "asks" boolean
);
comment on table agui.run is 'A run of an agent: a node of the tree of its thread.';
comment on column agui.run."run_no" is 'The runs of a thread, numbered 1, 2, 3, … in the order in which they began. A parent has a smaller number than its children.';
comment on column agui.run."parent_no" is 'The run that this one continues from; null: a root.';
comment on column agui.run."parent_given" is 'Whether its writer gave the parent, or that there is none, beside the events. Otherwise the parent is the one that RUN_STARTED names, else the run begun before it.';
comment on column agui.run."run_id" is 'runId of the protocol, unique in its thread.';
comment on column agui.run."status" is 'running; by its last end, even if events follow it: finished (RUN_FINISHED), interrupted (its outcome is interrupt), cancelled (its outcome is cancelled) or failed (RUN_ERROR); or cut_off: ended on behalf of its writer.';
comment on column agui.run."first_seq" is 'seq of its first event.';
comment on column agui.run."last_seq" is 'seq of its last event; null while it is running. Runs that were in progress at the same time interleave in the log.';
comment on column agui.run."end_seq" is 'seq of its last RUN_FINISHED or RUN_ERROR; null while it is running, and in rows of a store that did not have the column, until agui.reap finds it.';
comment on column agui.run."started_at" is 'recorded_at of its first event.';
comment on column agui.run."ended_at" is 'recorded_at of its last event, even if that follows the end; null while it is running.';
comment on column agui.run."seen_at" is 'When its writer last called agui.keep_alive for it.';
comment on column agui.run."has_heartbeat" is 'Whether its writer calls agui.keep_alive regularly. As long as it does, the lease is the setting heartbeat_lease, else the setting lease.';
comment on column agui.run."open_from" is 'No run of the thread with a smaller number was in progress when this one began, or has been since. A search for runs in progress begins here.';
comment on column agui.run."stop_requested_at" is 'Time of the first stop request (agui.request_stop); null: there is none.';
comment on column agui.run."stop_reason" is 'Reason given with the stop request; null: none.';
comment on column agui.run."cut_off_reason" is 'Reason why it was ended on behalf of its writer, who had gone; null: it was not.';
comment on column agui.run."n" is 'Number of its events, counted when compaction processed the run; null: not processed yet.';
comment on column agui.run."log_bytes" is 'Stored (compressed) size in bytes of its batches and its input, measured when compaction processed the run and when it was repacked; null: not processed yet.';
comment on column agui.run."repacked_at" is 'When its batches were joined into larger ones; null: not yet.';
comment on column agui.run."changed_in" is 'The transaction in which it began, ended, or took events after its end, whichever was last; tokens and jobs do not set it. A reader of changes has seen all with a number below pg_snapshot_xmin(pg_current_snapshot()). Numbers compare only in the cluster that assigned them. Null: no such transaction in this cluster.';
comment on column agui.run."asks" is 'Whether the run has asked (a CUSTOM event, agui_internal.question_name) since it began or last ended: a RUN_FINISHED without an outcome makes an interrupt of it; null: no.';

create table agui.run_input (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "input" json,
    "hash" bytea,
    "bytes" integer,
    "skeleton" text[],
    "sections" jsonb,
    "part_bytes" integer,
    "split_at" timestamp with time zone
);
comment on table agui.run_input is 'The input of a run (RunAgentInput) that its writer gave beside the events, because its RUN_STARTED carries none. It counts as the input of RUN_STARTED unless the first RUN_STARTED carries an object itself. A row is whole (input), or in parts (skeleton and sections), because clients send the whole conversation with each run. The view agui.input has the text of both, which never changes.';
comment on column agui.run_input."input" is 'The input, byte for byte; null: the row is in parts.';
comment on column agui.run_input."hash" is 'sha256 of the text of the input, which repeated calls are compared with. Null: a whole row of a store that did not have the column.';
comment on column agui.run_input."bytes" is 'Size of the text of the input in bytes. Null: a whole row of a store that did not have the column.';
comment on column agui.run_input."skeleton" is 'In parts: the pieces of the text before, between and after the sections.';
comment on column agui.run_input."sections" is 'In parts: a JSON array of what stands between two pieces of the skeleton: {"kind", "separator", "part_nos"}. part_nos are the parts in order (agui.input_part), as an array of ranges; the separator stands between them. The kind beginning: the first messages, while the input is not split.';
comment on column agui.run_input."part_bytes" is 'In parts: stored size in bytes of the parts that came with this input, because none before it had them.';
comment on column agui.run_input."split_at" is 'When the input was split into parts, or found to stay whole: it is small or very large, or the parts would not give the same text. Null: not yet.';

create table agui.session_key (
    "thread_key" uuid not null,
    "key" text not null,
    "last_version" bigint not null,
    "saved_at" timestamp with time zone not null
);
comment on table agui.session_key is 'A key of the session state of a thread. The writer of its next version locks this row, so versions are numbered without gaps, in commit order.';
comment on column agui.session_key."key" is 'The name that a part of the agent gave to its documents, for example memory.';
comment on column agui.session_key."last_version" is 'Number of the version saved last, at any run. A number is never reused, even if its version was pruned.';
comment on column agui.session_key."saved_at" is 'When it was saved.';

create table agui.session_state (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "key" text not null,
    "version" bigint not null,
    "document" json,
    "saved_at" timestamp with time zone not null
);
comment on table agui.session_state is 'Session state: documents that a part of the agent keeps beside the events, one for each thread, run and key, in their last versions. A run has what was saved nearest to it on its lineage.';
comment on column agui.session_state."run_no" is 'The run at which it was saved; 0: none, it belongs to the thread itself. No foreign key, because there is no run 0; agui.verify checks it.';
comment on column agui.session_state."key" is 'session_key.key.';
comment on column agui.session_state."version" is 'Numbers the documents of a key in its thread 1, 2, 3, …, whatever the run.';
comment on column agui.session_state."document" is 'The document, byte for byte; null: from this run on there is none, even if earlier runs have one.';
comment on column agui.session_state."saved_at" is 'When it was saved.';

create table agui.snapshot (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "through_seq" bigint not null,
    "message_nos" int4range[] not null,
    "state" json not null,
    "interrupts" json not null,
    "lanes" json,
    "created_at" timestamp with time zone not null,
    "rules" integer
);
comment on table agui.snapshot is 'The fold of the lineage of a run, its events up to through_seq included. Can be deleted and rebuilt at any time.';
comment on column agui.snapshot."through_seq" is 'seq of the last event of the run that the snapshot includes.';
comment on column agui.snapshot."message_nos" is 'Its messages in order, as ranges of message.message_no.';
comment on column agui.snapshot."state" is 'The state that the agent and its UI share.';
comment on column agui.snapshot."interrupts" is 'The interrupts that wait for an answer, as a JSON array.';
comment on column agui.snapshot."lanes" is 'Chunk streams (TEXT_MESSAGE_CHUNK, …) that are open at through_seq, so that the fold can continue between two chunks; null: none.';
comment on column agui.snapshot."rules" is 'The version of the rules by which it was folded (agui_internal.rules); null: 1. A snapshot of other rules is not used.';

create table agui.thread (
    "thread_key" uuid not null,
    "scope" text not null,
    "thread_id" text not null,
    "created_at" timestamp with time zone not null,
    "thread_uid" uuid
);
comment on table agui.thread is 'A conversation (AG-UI threadId) of a scope.';
comment on column agui.thread."thread_key" is 'agui.thread_key(scope, thread_id): 64 bits that hash the scope, then 64 bits that hash scope and thread id. The threads of a scope are one range of keys.';
comment on column agui.thread."scope" is 'The tenant or user that the thread belongs to; empty if scopes are not used. A name only: protection needs row-level security.';
comment on column agui.thread."thread_id" is 'threadId of the protocol, unique in its scope.';
comment on column agui.thread."created_at" is 'When the first event was appended, or session state or a checkpoint was saved.';
comment on column agui.thread."thread_uid" is 'A random id, another one if the thread is erased and begun again. Readers of changes recognize an erased thread by it. Null for threads from before there was one (agui_internal.uid_of_thread).';

create table agui.thread_activity (
    "thread_key" uuid not null,
    "scope_key" bigint not null,
    "active_at" timestamp with time zone not null,
    "written_in" xid8,
    "writes" smallint not null,
    "archived" boolean not null,
    "title" text,
    "derived_title" text,
    "agent" text,
    "metadata" jsonb not null
);
comment on table agui.thread_activity is 'What lists show of each thread: when it was active, and what agui.set_thread sets. The beginning and the end of a run update it; the events in between do not.';
comment on column agui.thread_activity."scope_key" is 'The first 64 bits of thread_key, as a number: the hash of the scope.';
comment on column agui.thread_activity."active_at" is 'When a run of the thread last began or ended, as in agui.run; without runs, when the thread was created.';
comment on column agui.thread_activity."written_in" is 'For agui.append: the transaction that set active_at last; null: that transaction has set it for the last time.';
comment on column agui.thread_activity."writes" is 'How often that transaction has set it.';
comment on column agui.thread_activity."archived" is 'Whether lists leave the thread out by default.';
comment on column agui.thread_activity."title" is 'The title that was set; null: none.';
comment on column agui.thread_activity."derived_title" is 'The beginning of the first user message, shown if no title is set; null: not known yet.';
comment on column agui.thread_activity."agent" is 'The agent that the thread belongs to; null: not set.';
comment on column agui.thread_activity."metadata" is 'What an application stores with the thread, a JSON object.';

create table agui.webhook (
    "name" text not null,
    "url" text not null,
    "scope" text,
    "kinds" text[] not null,
    "secret" text not null,
    "enabled" boolean not null,
    "disabled_because" text,
    "created_at" timestamp with time zone not null,
    "created_by" text not null,
    "old_secret" text,
    "old_secret_until" timestamp with time zone,
    "sends_from" text
);
comment on table agui.webhook is 'Endpoints that get an HTTP POST when a run has ended or waits for an answer (agui.add_webhook). The worker sends it. Only the owner can read the table, for it has secrets: agui.webhooks() shows the rest.';
comment on column agui.webhook."name" is 'The name of the webhook.';
comment on column agui.webhook."url" is 'Where the requests go.';
comment on column agui.webhook."scope" is 'The scope whose runs it is for; null: all scopes.';
comment on column agui.webhook."kinds" is 'run.finished, run.failed (also runs that were cut off), run.cancelled, run.waiting (it ended with an interrupt).';
comment on column agui.webhook."secret" is 'The key of the signatures, as Standard Webhooks has it: whsec_, then 24 to 64 bytes in base64.';
comment on column agui.webhook."enabled" is 'Whether requests are sent. If not, what happens meanwhile is sent once it is enabled again.';
comment on column agui.webhook."disabled_because" is 'Why it is disabled; null: agui.enable_webhook did it.';
comment on column agui.webhook."created_at" is 'When it was added. Runs that ended before are not sent.';
comment on column agui.webhook."created_by" is 'The role that was logged in.';
comment on column agui.webhook."old_secret" is 'The secret before agui.rotate_webhook_secret, which signs too until old_secret_until; null: there is none.';
comment on column agui.webhook."old_secret_until" is 'Until when old_secret signs.';
comment on column agui.webhook."sends_from" is 'The database that sends the requests (agui_internal.database_identity). In another one, which has the row from a dump, nothing is sent until agui.take_over_webhooks is called.';

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
comment on table agui.event is 'The log, one row for each event. To read a thread from a seq on, use agui.events: the view has to open every batch of the thread.';
comment on column agui.event."seq" is 'Position in the log of the thread: 1, 2, 3, … in commit order.';
comment on column agui.event."type" is 'Type of the event, decoded.';
comment on column agui.event."recorded_at" is 'Time when the event was appended.';
comment on column agui.event."payload" is 'The event, byte for byte.';
comment on column agui.event."thread_key" is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';

create table agui.held_thread (
    "scope" text,
    "thread_id" text,
    "reason" text,
    "held_at" timestamp with time zone,
    "held_by" text,
    "thread_key" uuid
);
comment on table agui.held_thread is 'The threads that are held (agui.set_hold), so that they cannot be erased.';
comment on column agui.held_thread."scope" is 'Scope of the thread.';
comment on column agui.held_thread."thread_id" is 'The thread.';
comment on column agui.held_thread."reason" is 'Why it is held.';
comment on column agui.held_thread."held_at" is 'Since when.';
comment on column agui.held_thread."held_by" is 'The role that was logged in.';
comment on column agui.held_thread."thread_key" is 'Key of the thread.';

create table agui.input (
    "thread_key" uuid not null,
    "run_no" integer not null,
    "input" json not null,
    "hash" bytea not null,
    "bytes" integer not null
);
comment on table agui.input is 'The inputs that runs were begun with, beside their events. A row of agui.run_input may be whole or in parts: this is the text of both.';
comment on column agui.input."thread_key" is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
comment on column agui.input."run_no" is 'Number of the run in its thread.';
comment on column agui.input."input" is 'The input (RunAgentInput), byte for byte.';
comment on column agui.input."hash" is 'sha256 of its text.';
comment on column agui.input."bytes" is 'Size of its text in bytes.';

create table agui.interrupt_fact (
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "agent" text,
    "interrupt_id" text,
    "reason" text,
    "message" text,
    "tool_call_id" text,
    "asked_at" timestamp with time zone,
    "expires_at" timestamp with time zone,
    "status" text,
    "answered_by" text,
    "answered_at" timestamp with time zone,
    "thread_key" uuid,
    "run_no" integer,
    "kind" text,
    "tool" text,
    "arguments" text
);
comment on table agui.interrupt_fact is 'The interrupts with which runs ended, and the tool calls without a result that wait or have waited for longer than the setting call_delay, as agui.project() found them: a row for each.';
comment on column agui.interrupt_fact."scope" is 'Scope of the thread.';
comment on column agui.interrupt_fact."thread_id" is 'The thread.';
comment on column agui.interrupt_fact."run_id" is 'The run that asks.';
comment on column agui.interrupt_fact."agent" is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.interrupt_fact."interrupt_id" is 'id of the interrupt; null: it has none.';
comment on column agui.interrupt_fact."reason" is 'Why the agent asks, as a word; null: not said.';
comment on column agui.interrupt_fact."message" is 'The question, its first 1000 characters; null: none.';
comment on column agui.interrupt_fact."tool_call_id" is 'The tool call that waits, or that the interrupt is about; null: none.';
comment on column agui.interrupt_fact."asked_at" is 'When the run ended.';
comment on column agui.interrupt_fact."expires_at" is 'Until when an answer counts; null: no limit.';
comment on column agui.interrupt_fact."status" is 'waiting: it is open after the head; answering: the head continues the run that asks, and is in progress; answered: a run that continues it has finished, or the conversation went on in another branch; expired: expires_at has passed without an answer. A run that failed answers no interrupt. A call is answered by a run that brings its result, and by no other.';
comment on column agui.interrupt_fact."answered_by" is 'The first run that continues it and has finished, or the one in progress; null: none.';
comment on column agui.interrupt_fact."answered_at" is 'When that run began; null: none did.';
comment on column agui.interrupt_fact."thread_key" is 'Key of the thread.';
comment on column agui.interrupt_fact."run_no" is 'Number of the run in its thread.';
comment on column agui.interrupt_fact."kind" is 'interrupt, or call: the run finished without a result of a tool call. If the input of the run lists tools, it is one of them.';
comment on column agui.interrupt_fact."tool" is 'Name of the function of the tool call; null: no call.';
comment on column agui.interrupt_fact."arguments" is 'The arguments of a call that waits, their first 1000 characters; null: it is an interrupt.';

create table agui.message (
    "thread_key" uuid,
    "message_no" integer,
    "message_id" text,
    "role" text,
    "body" json
);
comment on table agui.message is 'The versions of messages that snapshots refer to. A row of agui.message_version may have its text, or point to a part of the inputs: this is the text of both.';
comment on column agui.message."thread_key" is 'agui.thread_key(scope, thread_id), the key of the rows of the thread.';
comment on column agui.message."message_no" is 'Number of the version in its thread.';
comment on column agui.message."message_id" is 'id of the message, decoded; null if it has none.';
comment on column agui.message."role" is 'role of the message, decoded; null if it has none.';
comment on column agui.message."body" is 'The message in the form that AG-UI clients use.';

create table agui.quarantine (
    "job" text,
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "attempts" integer,
    "cause" text,
    "code" text,
    "error" text,
    "failed_at" timestamp with time zone,
    "next_attempt_at" timestamp with time zone,
    "thread_key" uuid,
    "run_no" integer
);
comment on table agui.quarantine is 'The runs that a job failed to process, one row for each job and run. The job retries them with backoff. Compaction also skips the runs that continue from them. If the cause is the run itself, reads that would have to fold it fail with UI022; its events can still be read. agui.retry lets the jobs retry at once.';
comment on column agui.quarantine."job" is 'compact, compact_running, reap, repack or split (of inputs).';
comment on column agui.quarantine."scope" is 'Scope of the thread.';
comment on column agui.quarantine."thread_id" is 'The thread.';
comment on column agui.quarantine."run_id" is 'The run.';
comment on column agui.quarantine."attempts" is 'Number of attempts, none of which succeeded.';
comment on column agui.quarantine."cause" is 'run: an error speaks against the run itself (a limit, a damaged log). interruption: the job died or was interrupted at the run (killed, out of memory, out of time), so reads go on.';
comment on column agui.quarantine."code" is 'SQLSTATE of the error; null: see error.';
comment on column agui.quarantine."error" is 'The last error that speaks against the run, else that of the last attempt; null if the attempt ended without an error or is in progress.';
comment on column agui.quarantine."failed_at" is 'Time when the last attempt failed or, without an error, when it began.';
comment on column agui.quarantine."next_attempt_at" is 'Time of the next attempt; null: the next call of the job.';
comment on column agui.quarantine."thread_key" is 'Key of the thread.';
comment on column agui.quarantine."run_no" is 'Number of the run in its thread.';

create table agui.run_fact (
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "parent_run_id" text,
    "agent" text,
    "status" text,
    "error_code" text,
    "error_message" text,
    "stop_reason" text,
    "cut_off_reason" text,
    "started_at" timestamp with time zone,
    "ended_at" timestamp with time zone,
    "duration" interval,
    "first_token_after" interval,
    "events" bigint,
    "bytes" bigint,
    "thread_key" uuid,
    "run_no" integer
);
comment on table agui.run_fact is 'All runs, with what agui.project() found in their logs. That is null while a run is in progress, and until the next call of the job.';
comment on column agui.run_fact."scope" is 'Scope of the thread.';
comment on column agui.run_fact."thread_id" is 'The thread.';
comment on column agui.run_fact."run_id" is 'The run.';
comment on column agui.run_fact."parent_run_id" is 'The run that it continues from; null: a root.';
comment on column agui.run_fact."agent" is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.run_fact."status" is 'running, finished, interrupted, cancelled, failed or cut_off, as in agui.run.';
comment on column agui.run_fact."error_code" is 'code of RUN_ERROR; null: none.';
comment on column agui.run_fact."error_message" is 'message of RUN_ERROR, its first 1000 characters; null: none.';
comment on column agui.run_fact."stop_reason" is 'Reason given with a stop request; null: none.';
comment on column agui.run_fact."cut_off_reason" is 'Why it was ended on behalf of its writer; null: it was not.';
comment on column agui.run_fact."started_at" is 'When its first event was recorded.';
comment on column agui.run_fact."ended_at" is 'When its last event was recorded; null while it is running.';
comment on column agui.run_fact."duration" is 'From its first event to its last; null while it is running.';
comment on column agui.run_fact."first_token_after" is 'How long after its beginning the first piece of a text message was recorded; null: there is none.';
comment on column agui.run_fact."events" is 'Number of its events.';
comment on column agui.run_fact."bytes" is 'Size of the text of its events in bytes.';
comment on column agui.run_fact."thread_key" is 'Key of the thread.';
comment on column agui.run_fact."run_no" is 'Number of the run in its thread.';

create table agui.setting (
    "name" text,
    "value" numeric,
    "unit" text,
    "default_value" numeric,
    "min_value" numeric,
    "max_value" numeric,
    "description" text
);
comment on table agui.setting is 'The settings of this database: leases and limits. agui.set_setting changes them.';
comment on column agui.setting."value" is 'Current value, in the unit.';
comment on column agui.setting."unit" is 'seconds, bytes or count.';
comment on column agui.setting."default_value" is 'Default value.';
comment on column agui.setting."min_value" is 'Smallest permitted value.';
comment on column agui.setting."max_value" is 'Largest permitted value.';
comment on column agui.setting."description" is 'Effect of the setting.';

create table agui.tenant (
    "role_name" name,
    "scope" text,
    "kind" text
);
comment on table agui.tenant is 'The mappings of roles to scopes, in effect while row-level security is on. Operators and the owner see all mappings, other roles their own.';
comment on column agui.tenant."role_name" is 'The role.';
comment on column agui.tenant."scope" is 'Its scope; null: see kind.';
comment on column agui.tenant."kind" is 'tenant: the role has the scope in the column scope. pool: the scope in the setting agui.scope. operator: all scopes.';

create table agui.tool_fact (
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "agent" text,
    "call_id" text,
    "tool" text,
    "status" text,
    "error" text,
    "started_at" timestamp with time zone,
    "duration" interval,
    "argument_bytes" bigint,
    "result_bytes" bigint,
    "result_run_id" text,
    "thread_key" uuid,
    "run_no" integer
);
comment on table agui.tool_fact is 'The tool calls of runs that have ended, as agui.project() found them: a row for each call. A call that a later run of the lineage starts again is the same.';
comment on column agui.tool_fact."scope" is 'Scope of the thread.';
comment on column agui.tool_fact."thread_id" is 'The thread.';
comment on column agui.tool_fact."run_id" is 'The run that made the call.';
comment on column agui.tool_fact."agent" is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.tool_fact."call_id" is 'toolCallId.';
comment on column agui.tool_fact."tool" is 'Name of the function.';
comment on column agui.tool_fact."status" is 'completed: there is a result; failed: the result is an error (see error); called: it waits for a result; cut_off: the run ended before the call or its result did.';
comment on column agui.tool_fact."error" is 'What failed, its first 1000 characters; null: nothing. A result is an error if it has a member error, or if its content begins with the word Error or is an object that begins with a member error or has "isError": true, or is the JSON string of such a text.';
comment on column agui.tool_fact."started_at" is 'When the call was recorded.';
comment on column agui.tool_fact."duration" is 'Until its result was recorded. A result that a client sends with the next run counts from the end of the run that made the call. Null: no result.';
comment on column agui.tool_fact."argument_bytes" is 'Size of the arguments in bytes, as JSON writes them.';
comment on column agui.tool_fact."result_bytes" is 'Size of the content of the result in bytes, as JSON writes it; null: no result.';
comment on column agui.tool_fact."result_run_id" is 'The run that brought the result: the same, or the first later one; null: no result.';
comment on column agui.tool_fact."thread_key" is 'Key of the thread.';
comment on column agui.tool_fact."run_no" is 'Number of the run in its thread.';

create table agui.usage_fact (
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "agent" text,
    "ended_at" timestamp with time zone,
    "provider" text,
    "model" text,
    "input_tokens" bigint,
    "output_tokens" bigint,
    "total_tokens" bigint,
    "reasoning_tokens" bigint,
    "cached_input_tokens" bigint,
    "cache_write_input_tokens" bigint,
    "thread_key" uuid,
    "run_no" integer
);
comment on table agui.usage_fact is 'The tokens that runs used, as agui.project() found them after their ends: a row for each entry of usage that counts for agui.usage.';
comment on column agui.usage_fact."scope" is 'Scope of the thread.';
comment on column agui.usage_fact."thread_id" is 'The thread.';
comment on column agui.usage_fact."run_id" is 'The run.';
comment on column agui.usage_fact."agent" is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.usage_fact."ended_at" is 'When the run ended.';
comment on column agui.usage_fact."provider" is 'Who runs the model; null: not named.';
comment on column agui.usage_fact."model" is 'The model; null: not named.';
comment on column agui.usage_fact."input_tokens" is 'Tokens of the prompt; null: not reported.';
comment on column agui.usage_fact."output_tokens" is 'Tokens of the answer; null: not reported.';
comment on column agui.usage_fact."total_tokens" is 'As reported, else input_tokens plus output_tokens.';
comment on column agui.usage_fact."reasoning_tokens" is 'A part of output_tokens: never add it.';
comment on column agui.usage_fact."cached_input_tokens" is 'A part of input_tokens: never add it.';
comment on column agui.usage_fact."cache_write_input_tokens" is 'A part of input_tokens: never add it.';
comment on column agui.usage_fact."thread_key" is 'Key of the thread.';
comment on column agui.usage_fact."run_no" is 'Number of the run in its thread.';

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
comment on table agui.activity is 'An activity of a conversation: its id, type and content, the run that began it, and the seq and time of its first and last event.';

create table agui.append_result (
    "call_no" integer not null,
    "last_seq" bigint,
    "error_code" text,
    "error" text,
    "detail" text,
    "hint" text,
    "recorded_at" timestamp with time zone
);
comment on table agui.append_result is 'The result of one call of agui.append_many. call_no is the number of the call, from 1. last_seq is the seq of its last event. If the call was refused, last_seq is null and error_code is the SQLSTATE, with the error text, its detail and its hint. recorded_at is when the events were recorded, if they continue a run in progress and all of them are new; otherwise null.';

create table agui.attachment (
    "run_id" text,
    "status" text,
    "running" text[] not null,
    "seq" bigint not null,
    "recorded_at" timestamp with time zone,
    "events" json not null
);
comment on table agui.attachment is 'The result of agui.attach. run_id: the run (null: the thread does not exist yet). status: its current status. running: the ids of the runs of the thread now in progress. seq and recorded_at: the position to follow from, which is the last event taken into account (0 and null: none). events: the history up to that position, a JSON array of events.';

create table agui.attachment_part (
    "attachment" agui.attachment,
    "next_part" integer
);
comment on table agui.attachment_part is 'The result of agui.attach_part. attachment: that of agui.attach, with the events of one part. next_part: the number of the part behind it; null: there is none.';

create table agui.attachment_row (
    "n" integer,
    "message_id" text,
    "type" text,
    "mime_type" text,
    "filename" text,
    "bytes" bigint
);
comment on table agui.attachment_row is 'A part of a message that holds data: its number in the conversation (from 1), the id of the message, and what the part says of itself: type (image, audio, video, document, binary), type of media, and name of the file (null: none). bytes: size of the decoded data.';

create table agui.branch (
    "run_id" text not null,
    "runs" integer not null,
    "forked_from" text,
    "status" text not null,
    "last_seq" bigint,
    "is_head" boolean not null
);
comment on table agui.branch is 'A branch of a thread: its last run, the number of runs from the root to it, the last run that it shares with another branch (null: none), the status and last seq of its last run, and whether its last run is the head, from which a new run without a parent continues.';

create table agui.branch_point_row (
    "parent_run_id" text,
    "point" text not null,
    "is_filled" boolean not null,
    "lacks_history" boolean not null,
    "history_bytes" bigint not null
);
comment on table agui.branch_point_row is 'Where a run continues (agui.branch_point). parent_run_id: its parent (null: none). point: the messages of the client continue the conversation (head), leave it with an edit (before), replace it (start), or were trimmed or reordered, and continue it (elsewhere). is_filled: the agent needs agui.agent_messages in place of what the client sent. lacks_history: the client lacks stored messages, or has them under other ids. history_bytes: size of the stored messages and the state at the parent.';

create table agui.chain_head (
    "scope" text not null,
    "thread_id" text not null,
    "seq" bigint not null,
    "hash" bytea not null,
    "recorded_at" timestamp with time zone not null
);
comment on table agui.chain_head is 'The last link of a chained thread: the seq of the last event that it covers, its hash (SHA-256, 32 bytes), and when that event was recorded.';

create table agui.changed_run (
    "position" text,
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "parent_run_id" text,
    "status" text,
    "first_seq" bigint,
    "last_seq" bigint,
    "started_at" timestamp with time zone,
    "ended_at" timestamp with time zone,
    "thread_uid" uuid,
    "is_erased" boolean
);
comment on table agui.changed_run is 'A run that began, ended, or took events after its end; or, if is_erased, a thread that was erased: then only position and thread_uid are not null. position: what agui.changes takes to go on behind it. thread_uid: a random id of the thread, another one if it is erased and begun again; all that was copied of an erased thread has it. The others are those of the run when it was read, which may be later than the change: last_seq and ended_at are null while it is running. Its events are those of the run from first_seq on (agui.events).';

create table agui.channel_write_row (
    "place" integer,
    "checkpoint_id" text,
    "channel" text,
    "task_id" text,
    "type" text,
    "body" json,
    "bytes" bytea
);
comment on table agui.channel_write_row is 'A step in the history of a channel: a write of a task, or (task_id is null) the value that the writes after it build on. body, byte for byte, if it is JSON (its type is json), otherwise bytes. place: its place in the history, -1 for the newest step, -2 for the one before it, ….';

create table agui.checkpoint_content (
    "thread_id" text,
    "namespace" text,
    "checkpoint_id" text,
    "parent_id" text,
    "run_id" text,
    "cursor" text,
    "kind" text,
    "channel" text,
    "version" text,
    "task_id" text,
    "task_path" text,
    "place" integer,
    "type" text,
    "body" json,
    "bytes" bytea
);
comment on table agui.checkpoint_content is 'A piece of a checkpoint of a graph. kind says which: document (without the values of channels), metadata, value (of a channel, with its version), or write (what a task wrote to a channel after the checkpoint; place is the place in its writes). body is the content, byte for byte, if it is JSON (its type is json), otherwise bytes. parent_id: the checkpoint that it continues from (null: none). run_id: the run of the log that the graph was working on (null: none was named). cursor: the place of the checkpoint in a list, for agui.checkpoint_contents.';

create table agui.checkpoint_row (
    "checkpoint_no" bigint not null,
    "namespace" text not null,
    "checkpoint_id" text not null,
    "parent_id" text,
    "run_id" text,
    "saved_at" timestamp with time zone not null,
    "document" json not null
);
comment on table agui.checkpoint_row is 'A checkpoint: its number in its thread (see agui.save_checkpoint); its namespace and id; the checkpoint that it continues from (null: none); the run that the engine was working on (null: none was named); the time when it was saved; and its document, byte for byte.';

create table agui.consumed_run (
    "position" text,
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "parent_run_id" text,
    "status" text,
    "first_seq" bigint,
    "last_seq" bigint,
    "started_at" timestamp with time zone,
    "ended_at" timestamp with time zone,
    "thread_uid" uuid,
    "is_erased" boolean,
    "read_seq" bigint
);
comment on table agui.consumed_run is 'A row of agui.changes for a consumer. position: what agui.move_consumer takes once the row is processed. read_seq: the seq of the last event of the thread that the consumer has processed (agui.mark_read); 0: none.';

create table agui.consumer_place (
    "scope" text,
    "consumer" text,
    "position" text,
    "behind" bigint,
    "is_lost" boolean,
    "created_at" timestamp with time zone,
    "moved_at" timestamp with time zone
);
comment on table agui.consumer_place is 'A consumer of agui.consume. scope: null for all scopes. position: it has processed the changes up to here (null: none). behind: how many changed runs and erased threads it has not processed, at most 10000 are counted; null if is_lost. is_lost: the position is of another history of transactions (the database was restored, or failed over), so it has to begin again. created_at, moved_at: when its place was noted first and last.';

create table agui.error_page (
    "errors" agui.error_row[],
    "next_seq" bigint
);
comment on table agui.error_page is 'A page of the errors of a thread, in the order of seq. next_seq: at_seq of the page before it; null: there are no others. A page that has one may have few errors, or none.';

create table agui.error_row (
    "seq" bigint,
    "run_id" text,
    "kind" text,
    "error_code" text,
    "error_message" text,
    "stop_reason" text,
    "cut_off_reason" text,
    "tool_call_id" text,
    "tool" text,
    "recorded_at" timestamp with time zone
);
comment on table agui.error_row is 'Something that went wrong in a thread: seq, run and time of the event that says so. kind: how a run ended (failed, cut_off or cancelled; error_code, error_message, stop_reason and cut_off_reason as in agui.run_info), or tool: a tool call whose result is an error, as in agui.tool_fact, which error_message has. tool: the name of its function; null: neither the run nor its parent made the call. Texts are up to 1,000 characters.';

create table agui.event_row (
    "seq" bigint not null,
    "run_id" text not null,
    "type" text not null,
    "recorded_at" timestamp with time zone not null,
    "payload" json not null
);
comment on table agui.event_row is 'An event of the log: its position in the thread, its run, its type, the time when it was appended, and the event byte for byte.';

create table agui.found_text (
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "message_id" text,
    "role" text,
    "seq" bigint,
    "said_at" timestamp with time zone,
    "rank" real,
    "snippet" text,
    "cursor" text,
    "searched_to" timestamp with time zone
);
comment on table agui.found_text is 'A message that agui.search found. run_id, seq, said_at: the run that brought the text first, and the event with which it began, or the first event of the run if its input brought it. message_id: null if it has none. rank: how well it matches. snippet: the parts of the text that match. cursor: what agui.search takes to go on behind it. searched_to: so many match that only the newest were ranked, back to this time; null: all were.';

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
comment on table agui.history_row is 'One event of the history of a thread, or several joined events. seq and last_seq are those of the first and the last one; event_count is their number; created_at and completed_at are the times when the first and the last one were appended (completed_at is null for a single event); payload is the event. An event that was joined before it was appended states its own count and times.';

create table agui.interrupt_row (
    "interrupt_id" text,
    "reason" text,
    "message" text,
    "tool_call_id" text,
    "expires_at" timestamp with time zone,
    "expired" boolean,
    "interrupt" json
);
comment on table agui.interrupt_row is 'An open interrupt: id, reason, message and toolCallId (null if it has none, or if it is not a string); expires_at, the time in expiresAt (null if there is none, or if it is not a time); expired, whether that time has passed, so that a client can no longer answer it but only cancel it; and the interrupt as the agent sent it.';

create table agui.keep_alive_row (
    "call_no" integer not null,
    "status" text not null,
    "stop_requested_at" timestamp with time zone,
    "stop_reason" text,
    "cut_off_reason" text
);
comment on table agui.keep_alive_row is 'A message from agui.keep_alive to the writer of a run. call_no is the position of the run in the arguments, from 1. status is the status of the run, or claimed before its beginning. stop_requested_at and stop_reason are set if it should stop. cut_off_reason is set if it was ended on behalf of its writer.';

create table agui.lag_row (
    "runs_to_compact" bigint,
    "compaction_lag" interval,
    "runs_to_repack" bigint,
    "repack_lag" interval,
    "running_runs" bigint,
    "stale_runs" bigint,
    "oldest_sign_of_life" interval,
    "quarantined_runs" bigint,
    "is_exact" boolean
);
comment on table agui.lag_row is 'The backlog of the jobs and the age of runs in progress. runs_to_compact: ended runs that compaction has not processed yet; compaction_lag: time since the first of them ended (null: there is none). runs_to_repack: runs that ended longer ago than agui_internal.repack_after() and are not repacked yet; repack_lag: time since the first of them ended. running_runs: runs in progress; stale_runs: those without a sign of life (a batch, or seen_at) within their lease; oldest_sign_of_life: longest time since the last sign of life of a run in progress. quarantined_runs: rows of agui.quarantine. is_exact: false if a queue was longer than the part of it that was read, so that runs_to_compact or runs_to_repack are at least as shown.';

create table agui.message_row (
    "position" integer not null,
    "message_id" text,
    "role" text,
    "message" json not null
);
comment on table agui.message_row is 'A message of a conversation: its position (from 1), its id and role (null if it has none), and the message in the form that AG-UI clients use.';

create table agui.model_usage (
    "provider" text,
    "model" text,
    "input_tokens" bigint,
    "output_tokens" bigint,
    "total_tokens" bigint,
    "reasoning_tokens" bigint,
    "cached_input_tokens" bigint,
    "cache_write_input_tokens" bigint,
    "runs" bigint not null,
    "all_runs" bigint not null,
    "runs_without_usage" bigint not null
);
comment on table agui.model_usage is 'The tokens that runs used of a model of a provider (null: not named), as AG-UI counts them: total_tokens is input_tokens plus output_tokens; reasoning_tokens is a part of output_tokens, cached_input_tokens and cache_write_input_tokens are parts of input_tokens, so never add them. Null: no run reported the count. 9223372036854775807: that many or more. runs: how many runs used the model. The same in all rows: all_runs, how many runs were read, and runs_without_usage, how many of them reported nothing.';

create table agui.placed_message (
    "position" integer,
    "message_id" text,
    "role" text,
    "message" json,
    "run_id" text,
    "first_seq" bigint,
    "last_seq" bigint,
    "started_at" timestamp with time zone,
    "updated_at" timestamp with time zone,
    "calls" json,
    "cursor" text
);
comment on table agui.placed_message is 'A message of a conversation and its place in the log. position, message_id, role and message: as in agui.message_row. run_id and first_seq: the run and the event that brought it; an input beside the events counts at RUN_STARTED. last_seq: the last event of that run that is about it, such as its end, or one of a tool call in it. started_at and updated_at: the timestamps of these two events, else when they were appended. All of them null: the message has no id. calls: the places of the tool calls in it, from that run, as an array of {toolCallId, firstSeq, lastSeq, startedAt, updatedAt}; null: none. A result is a message with a place of its own. cursor: to continue before the message.';

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
comment on table agui.poll_row is 'A row of agui.poll: new events for a follower, as a JSON array of n events of one run, with consecutive seqs from first_seq on. thread_no is the position of the thread in the arguments, from 1. status is the current status of the run, which may have ended later in the log. recorded_at is the time when the last of the events was appended; earlier_us, if not null, says for each event how many microseconds earlier it was appended. If problem is set, the other columns are null, and it is the SQLSTATE why the thread cannot be followed from there: UI012 another thread has the same key, UI017 the log was rewound, UI014 the thread was erased, UI027 another node of the cluster has it. A row with only thread_no says that the thread has more events than fit.';

create table agui.run_claim (
    "run_id" text not null,
    "parent_run_id" text,
    "parallel" boolean not null,
    "claimed_at" timestamp with time zone not null,
    "alive_until" timestamp with time zone not null
);
comment on table agui.run_claim is 'The claim of a run that will begin (agui.claim_run): the parent that it will have (null: none), whether it may begin while others are in progress, and when the lease of the claim ends if agui.keep_alive does not renew it.';

create table agui.run_info (
    "depth" integer not null,
    "run_id" text not null,
    "parent_run_id" text,
    "status" text not null,
    "first_seq" bigint not null,
    "last_seq" bigint,
    "started_at" timestamp with time zone not null,
    "ended_at" timestamp with time zone,
    "run_no" integer not null,
    "error_code" text,
    "error_message" text,
    "stop_reason" text,
    "cut_off_reason" text
);
comment on table agui.run_info is 'A run as the functions of the tree return it. depth is the number of runs from the root to it (1 for a root). last_seq and ended_at are null while it is running. run_no numbers the runs of the thread in the order in which they began. status: running, finished, interrupted (waits for answers), cancelled, failed or cut_off. The last four columns say why it ended so, or are null: code and message of RUN_ERROR, the reason of the stop that cancelled it, and why it was ended on behalf of its writer. Each is cut after 1,000 characters.';

create table agui.run_row (
    "thread_id" text,
    "run_id" text,
    "parent_run_id" text,
    "status" text,
    "title" text,
    "agent" text,
    "first_seq" bigint,
    "last_seq" bigint,
    "started_at" timestamp with time zone,
    "ended_at" timestamp with time zone,
    "error_code" text,
    "error_message" text,
    "stop_reason" text,
    "cut_off_reason" text,
    "cursor" text
);
comment on table agui.run_row is 'A run in a list over threads. title and agent are those of its thread, as agui.threads shows them. The columns from error_code to cut_off_reason say why it ended so, as in agui.run_info. cursor: the position of the run in lists, from which agui.list_runs continues.';

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
    "has_heartbeat" boolean,
    "stop_requested_at" timestamp with time zone,
    "stop_reason" text,
    "cut_off_reason" text,
    "error_code" text,
    "error_message" text
);
comment on table agui.run_status is 'The status of a run: its parent (null: it is a root); running, finished, interrupted (it waits for answers), cancelled, failed (RUN_ERROR) or cut_off (ended on behalf of its writer); its last seq so far; its last sign of life, an event or a call of agui.keep_alive; is_stale, if it is running but its last sign of life is longer ago than the lease; has_heartbeat, if its writer sends heartbeats, as a recorder does; the time and reason of a stop request; and the reason why it was ended on behalf of its writer, if it was; code and message of the RUN_ERROR that ended it.';

create table agui.session_document (
    "key" text not null,
    "run_id" text,
    "version" bigint not null,
    "saved_at" timestamp with time zone not null,
    "document" json
);
comment on table agui.session_document is 'A session state document: its key, the run at which it was saved (null: it belongs to the thread itself), its version, the time when it was saved, and its document, byte for byte. A null document records a removal.';

create table agui.session_message (
    "seq" bigint,
    "type" text not null,
    "message_id" text,
    "run_id" text,
    "created_at" timestamp with time zone,
    "payload" json not null
);
comment on table agui.session_message is 'A message of a legacy session, the format in use before AG-UI: user, assistant and system {content}, tool_use {id, name, input}, tool_result {tool_use_id, content}, error {message, code}. seq, run_id and created_at are those of the event that brought it. message_id is the AG-UI message that it is, or is a part of.';

create table agui.session_run (
    "run_id" text not null,
    "events" json not null
);
comment on table agui.session_run is 'A run converted from messages of a legacy session, as arguments for agui.append.';

create table agui.stats_row (
    "threads" bigint,
    "runs" bigint,
    "running_runs" bigint,
    "finished_runs" bigint,
    "interrupted_runs" bigint,
    "cancelled_runs" bigint,
    "failed_runs" bigint,
    "cut_off_runs" bigint,
    "events" bigint,
    "repacked_runs" bigint,
    "compacted_log_bytes" bigint,
    "log_disk_bytes" bigint,
    "snapshot_disk_bytes" bigint,
    "tree_disk_bytes" bigint,
    "session_disk_bytes" bigint,
    "erased_threads" bigint,
    "is_exact" boolean
);
comment on table agui.stats_row is 'Counts and sizes of a store, or of one scope of it. threads; runs; running_runs: runs in progress, always exact; finished_runs: runs that ended with RUN_FINISHED and are not interrupted or cancelled; interrupted_runs: ended with an interrupt, answered or not; cancelled_runs: stopped; failed_runs: ended with RUN_ERROR; cut_off_runs: ended on behalf of their writers. events: of the runs that have ended. repacked_runs: runs whose batches agui.repack has joined. compacted_log_bytes: stored size of the batches of the compacted runs. The sizes on disk include indexes and rows that wait for vacuum, and are null for a role that sees one scope: log_disk_bytes; snapshot_disk_bytes with messages; tree_disk_bytes: threads and runs; session_disk_bytes: session state and checkpoints. erased_threads: those whose erasure was not lifted. is_exact: false if counts other than running_runs are estimates.';

create table agui.subagent (
    "depth" integer not null,
    "subagent_run_id" text not null,
    "name" text,
    "description" text,
    "parent_subagent_run_id" text,
    "parent_tool_call_id" text,
    "parent_message_id" text,
    "status" text not null,
    "run_id" text not null,
    "last_run_id" text not null,
    "first_seq" bigint not null,
    "last_seq" bigint not null,
    "event_count" bigint not null,
    "started_at" timestamp with time zone not null,
    "ended_at" timestamp with time zone,
    "duration" interval,
    "result" json,
    "interrupt_ids" text[],
    "error_message" text,
    "error_code" text,
    "usage" json
);
comment on table agui.subagent is 'An invocation of a subagent. depth: 1 for a subagent of the main agent, 2 for a subagent of that, and so on. name, description and the parents: as its first SUBAGENT_STARTED names them (null: not named). status: running, finished, suspended (waits for answers to interrupt_ids), failed (with error_message and error_code), or cut_off (its run ended first). run_id and last_run_id: the runs of its first and last event; they differ if it was suspended and resumed. event_count: the events that name it. ended_at: null while it is running. duration: the time between its first and last event in each run, added up; the wait while it is suspended does not count. result, interrupt_ids, error_message, error_code and usage (an array, not in AG-UI 1.0, but some agents send it): of its last end; null while it is running.';

create table agui.thread_page_row (
    "threads" agui.thread_row[],
    "next_cursor" text,
    "searched_to" timestamp with time zone
);
comment on table agui.thread_page_row is 'A page of threads, most recent activity first, and the cursor of the next page. The list ends only if next_cursor is null: a short or empty page may have one. searched_to: if the page ends because 10,000 threads were examined, the active_at of the last one, so that a user can see how far back a search went; else null.';

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
    "cursor" text not null,
    "error_code" text,
    "error_message" text,
    "stop_reason" text,
    "cut_off_reason" text
);
comment on table agui.thread_row is 'A thread in a list. title: the one that was set, else the beginning of the first user message, else null. agent (null: not set) and metadata: as set. archived: whether it is archived. created_at: when it was created. active_at: when a run of it last began or ended. head_run_id and status: the head and its status (null while there are no runs). is_stale: whether the head is in progress without a sign of life within the lease. runs and branches: how many there are. cursor: the position of the thread in lists, from which agui.threads continues. The last four columns say why the head ended so, as in agui.run_info.';

create table agui.tool_call (
    "tool_call_id" text not null,
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
comment on table agui.tool_call is 'A tool call. arguments: the text of the arguments received so far (with JSON escapes for what text cannot contain: \u0000 or half an emoji). arguments_json: the same as JSON (null: it is not valid JSON). result: the content of the message of the tool (null: none yet). first_seq and last_seq: its first and last event. status: streaming (arguments are arriving), called (the arguments are complete, no result yet), completed, or cut_off (its run failed, or ended before the arguments were complete, and there is no result). ended_at: when the result arrived or the call was cut off.';

create table agui.verify_row (
    "run_id" text,
    "problem" text not null,
    "severity" text not null
);
comment on table agui.verify_row is 'A finding of agui.verify and the run it concerns (run_id is null if none can be named). severity: ’damage’ is what the database must not contain; ’note’ is what the agent or its writer did against the protocol, stored as it was appended.';

create table agui.webhook_failure (
    "webhook" text,
    "event_id" text,
    "kind" text,
    "scope" text,
    "thread_id" text,
    "run_id" text,
    "ended_at" timestamp with time zone,
    "attempts" integer,
    "outcome" text,
    "failed_at" timestamp with time zone,
    "next_attempt_at" timestamp with time zone,
    "body" json
);
comment on table agui.webhook_failure is 'A request of a webhook that failed: kind and body are what was to be sent when the run ended at ended_at, outcome is what came of the last attempt. next_attempt_at null: it failed for good.';

create table agui.webhook_info (
    "name" text,
    "url" text,
    "scope" text,
    "kinds" text[],
    "enabled" boolean,
    "disabled_because" text,
    "created_at" timestamp with time zone,
    "created_by" text,
    "to_send" bigint,
    "failed" bigint,
    "retrying" bigint,
    "old_secret_until" timestamp with time zone,
    "is_elsewhere" boolean
);
comment on table agui.webhook_info is 'A webhook (agui.webhook) without its secret. scope: null means all scopes. to_send is the number of requests that wait or are being sent, failed the number of those that failed for good, retrying that of those that failed and are repeated. old_secret_until: until when the secret before agui.rotate_webhook_secret signs too; null: there is none. is_elsewhere: another database sends the requests, of which this one is a copy (agui.take_over_webhooks).';

create function agui.abandon(thread_id text, run_id text, reason text DEFAULT 'its writer is gone'::text, imported boolean DEFAULT false, cancelled boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.activities(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.activity language sql as '';
create function agui.add_webhook(name text, url text, kinds text[] DEFAULT NULL::text[], secret text DEFAULT NULL::text, scope text DEFAULT NULL::text) returns text language sql as '';
create function agui.agent_messages(thread_id text, messages json, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.agent_report(since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT NULL::text) returns TABLE(agent text, runs bigint, running bigint, finished bigint, interrupted bigint, cancelled bigint, failed bigint, cut_off bigint, median_duration interval, p95_duration interval, median_first_token interval, p95_first_token interval) language sql as '';
create function agui.answered(thread_id text, run_id text DEFAULT NULL::text, asked_by text DEFAULT NULL::text, interrupt_ids text[] DEFAULT NULL::text[], question json DEFAULT NULL::json, scope text DEFAULT ''::text) returns TABLE(asking_run_id text, answered_by text, answered_at timestamp with time zone) language sql as '';
create function agui.append(thread_id text, run_id text, events json, after_seq bigint DEFAULT NULL::bigint, input json DEFAULT NULL::json, parent_run_id text DEFAULT NULL::text, parallel boolean DEFAULT false, strict boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.append_many(thread_ids text[], run_ids text[], events json[], after_seqs bigint[] DEFAULT NULL::bigint[], inputs json[] DEFAULT NULL::json[], parent_run_ids text[] DEFAULT NULL::text[], parallel boolean[] DEFAULT NULL::boolean[], strict boolean DEFAULT false, wait boolean DEFAULT true, durable boolean DEFAULT true, scopes text[] DEFAULT NULL::text[]) returns SETOF agui.append_result language sql as '';
create function agui.attach(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, shape text DEFAULT 'snapshot'::text, scope text DEFAULT ''::text) returns agui.attachment language sql as '';
create function agui.attach_part(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, part integer DEFAULT 1, part_bytes integer DEFAULT 8388608, customs_of text DEFAULT 'head'::text, scope text DEFAULT ''::text) returns agui.attachment_part language sql as '';
create function agui.attachment_data(thread_id text, n integer, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text, OUT message_id text, OUT type text, OUT mime_type text, OUT filename text, OUT data bytea) returns SETOF record language sql as '';
create function agui.attachments(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.attachment_row language sql as '';
create function agui.branch_point(thread_id text, messages json, run_id text DEFAULT NULL::text, history text DEFAULT 'fill'::text, is_given boolean DEFAULT false, waited_from text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.branch_point_row language sql as '';
create function agui.branches(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.branch language sql as '';
create function agui.bucket(scope text, thread_id text) returns integer language sql as '';
create function agui.changes(after text DEFAULT NULL::text, max_rows integer DEFAULT 1000, scope text DEFAULT NULL::text) returns SETOF agui.changed_run language sql as '';
create function agui.channel_history(thread_id text, channels text[], checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text) returns SETOF agui.channel_write_row language sql as '';
create function agui.checkpoint_contents(thread_id text DEFAULT NULL::text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT NULL::text, before_id text DEFAULT NULL::text, filter json DEFAULT NULL::json, max_rows integer DEFAULT 50, cursor text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.checkpoint_content language sql as '';
create function agui.checkpoint_lineage(thread_id text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text, after_no bigint DEFAULT NULL::bigint, page_bytes integer DEFAULT NULL::integer) returns SETOF agui.checkpoint_row language sql as '';
create function agui.checkpoints(thread_id text, namespace text DEFAULT NULL::text, scope text DEFAULT ''::text, after_no bigint DEFAULT NULL::bigint, page_bytes integer DEFAULT NULL::integer) returns SETOF agui.checkpoint_row language sql as '';
create function agui.children(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.claim_run(thread_id text, run_id text, claimant text, input json DEFAULT NULL::json, parent_run_id text DEFAULT NULL::text, parallel boolean DEFAULT false, scope text DEFAULT ''::text) returns agui.run_claim language sql as '';
create function agui.claims(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.run_claim language sql as '';
create function agui.cluster_map() returns json language sql as '';
create function agui.compact_events(events json, shape text DEFAULT 'stream'::text) returns json language sql as '';
create function agui.consume(consumer text, max_rows integer DEFAULT 1000, scope text DEFAULT NULL::text) returns SETOF agui.consumed_run language sql as '';
create function agui.consumers() returns SETOF agui.consumer_place language sql as '';
create function agui.copy_checkpoints(thread_id text, to_thread_id text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.day_report(since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT NULL::text) returns TABLE(day date, threads bigint, runs bigint, failed bigint, events numeric, bytes numeric) language sql as '';
create function agui.disable_chain(scope text DEFAULT NULL::text) returns boolean language sql as '';
create function agui.disable_search() returns boolean language sql as '';
create function agui.drop_webhook_failures(webhook text, event_id text DEFAULT NULL::text) returns bigint language sql as '';
create function agui.enable_chain(scope text DEFAULT NULL::text) returns boolean language sql as '';
create function agui.enable_search(language text DEFAULT 'simple'::text) returns void language sql as '';
create function agui.enable_webhook(name text, enabled boolean DEFAULT true) returns boolean language sql as '';
create function agui.erase(thread_id text, reason text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.erasure language sql as '';
create function agui.events(thread_id text, run_id text DEFAULT NULL::text, after_seq bigint DEFAULT 0, lineage boolean DEFAULT true, scope text DEFAULT ''::text) returns SETOF agui.event_row language sql as '';
create function agui.get_agent_error(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns TABLE(status integer, content_type text, body bytea, recorded_at timestamp with time zone) language sql as '';
create function agui.get_thread(thread_id text, scope text DEFAULT ''::text) returns agui.thread_row language sql as '';
create function agui.head(thread_id text, scope text DEFAULT ''::text) returns text language sql as '';
create function agui.heads(scope text DEFAULT NULL::text) returns SETOF agui.chain_head language sql as '';
create function agui.history(thread_id text, run_id text DEFAULT NULL::text, after_seq bigint DEFAULT 0, types text[] DEFAULT NULL::text[], since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, max_rows integer DEFAULT 100, compressed boolean DEFAULT true, max_bytes integer DEFAULT NULL::integer, max_idle interval DEFAULT NULL::interval, lineage boolean DEFAULT true, scope text DEFAULT ''::text, page_bytes integer DEFAULT NULL::integer) returns SETOF agui.history_row language sql as '';
create function agui.import_events(thread_id text, run_id text, events json, after_seq bigint DEFAULT NULL::bigint, input json DEFAULT NULL::json, parent_run_id text DEFAULT NULL::text, parallel boolean DEFAULT false, strict boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.interrupts(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.interrupt_row language sql as '';
create function agui.json_patch(doc jsonb, patch jsonb) returns jsonb language sql as '';
create function agui.keep_agent_error(thread_id text, run_id text, status integer, content_type text, body bytea, scope text DEFAULT ''::text) returns void language sql as '';
create function agui.keep_alive(thread_ids text[], run_ids text[], detach boolean DEFAULT false, scopes text[] DEFAULT NULL::text[]) returns SETOF agui.keep_alive_row language sql as '';
create function agui.lag(exact boolean DEFAULT false) returns agui.lag_row language sql as '';
create function agui.last_errors(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, max_rows integer DEFAULT 100, lineage boolean DEFAULT true, scope text DEFAULT ''::text) returns agui.error_page language sql as '';
create function agui.last_events(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, types text[] DEFAULT NULL::text[], max_rows integer DEFAULT 100, lineage boolean DEFAULT true, scope text DEFAULT ''::text, page_bytes integer DEFAULT NULL::integer) returns SETOF agui.event_row language sql as '';
create function agui.last_messages(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, cursor text DEFAULT NULL::text, max_rows integer DEFAULT 100, scope text DEFAULT ''::text) returns SETOF agui.placed_message language sql as '';
create function agui.lift_erasure(thread_id text, scope text DEFAULT ''::text) returns boolean language sql as '';
create function agui.lift_hold(thread_id text, scope text DEFAULT ''::text) returns boolean language sql as '';
create function agui.lineage(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.list_runs(status text[] DEFAULT '{failed,cut_off}'::text[], since timestamp with time zone DEFAULT NULL::timestamp with time zone, max_rows integer DEFAULT 50, cursor text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.run_row language sql as '';
create function agui.load_checkpoint(thread_id text, checkpoint_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.checkpoint_row language sql as '';
create function agui.load_session(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.load_session_state(thread_id text, key text, run_id text DEFAULT NULL::text, version bigint DEFAULT NULL::bigint, scope text DEFAULT ''::text) returns SETOF agui.session_document language sql as '';
create function agui.load_sessions(thread_ids text[], run_ids text[] DEFAULT NULL::text[], scope text DEFAULT ''::text) returns json language sql as '';
create function agui.malformed_events(thread_id text, run_id text DEFAULT NULL::text, max_rows integer DEFAULT 100, scope text DEFAULT ''::text) returns TABLE(seq bigint, type text, problem text) language sql as '';
create function agui.map_operator(role_name name) returns void language sql as '';
create function agui.map_pool(role_name name) returns void language sql as '';
create function agui.map_tenant(role_name name, scope text) returns void language sql as '';
create function agui.map_usage(path text[], names jsonb DEFAULT '{}'::jsonb, custom text DEFAULT NULL::text) returns void language sql as '';
create function agui.mark_read(consumer text, thread_id text, seq bigint, thread_scope text DEFAULT NULL::text, thread_uid uuid DEFAULT NULL::uuid, scope text DEFAULT NULL::text) returns void language sql as '';
create function agui.merge_base(thread_id text, run_a text, run_b text, scope text DEFAULT ''::text) returns text language sql as '';
create function agui.message_origin(thread_id text, message_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.messages(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.message_row language sql as '';
create function agui.model_report(since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT NULL::text) returns TABLE(provider text, model text, runs bigint, input_tokens numeric, output_tokens numeric, total_tokens numeric, reasoning_tokens numeric, cached_input_tokens numeric, cache_write_input_tokens numeric) language sql as '';
create function agui.move_consumer(consumer text, after text, scope text DEFAULT NULL::text) returns void language sql as '';
create function agui.pending_tool_calls(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns text[] language sql as '';
create function agui.poll(thread_ids text[], after_seqs bigint[], after_times timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], max_rows integer DEFAULT 100, page_bytes integer DEFAULT 16777216, scopes text[] DEFAULT NULL::text[]) returns SETOF agui.poll_row language sql as '';
create function agui.prune_checkpoints(thread_id text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.put_checkpoint(thread_id text, checkpoint_id text, document json, metadata json DEFAULT '{}'::json, parent_id text DEFAULT NULL::text, channels text[] DEFAULT '{}'::text[], versions text[] DEFAULT '{}'::text[], types text[] DEFAULT '{}'::text[], channel_values json DEFAULT '[]'::json, run_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.put_checkpoint_writes(thread_id text, checkpoint_id text, task_id text, channels text[], types text[], channel_values json, places integer[] DEFAULT NULL::integer[], task_path text DEFAULT ''::text, namespace text DEFAULT ''::text, scope text DEFAULT ''::text) returns void language sql as '';
create function agui.rebuild_facts() returns void language sql as '';
create function agui.rebuild_snapshots(thread_id text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.release_claim(thread_id text, run_id text, claimant text, scope text DEFAULT ''::text) returns boolean language sql as '';
create function agui.remove_checkpoints(thread_id text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.remove_consumer(consumer text, scope text DEFAULT NULL::text) returns boolean language sql as '';
create function agui.remove_retention(action text, scope text DEFAULT NULL::text) returns boolean language sql as '';
create function agui.remove_run_checkpoints(run_ids text[], thread_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.remove_session_state(thread_id text, key text, run_id text DEFAULT NULL::text, expected_version bigint DEFAULT 0, overwrite boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.remove_webhook(name text) returns boolean language sql as '';
create function agui.replay(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, shape text DEFAULT 'snapshot'::text, scope text DEFAULT ''::text) returns SETOF json language sql as '';
create function agui.request_stop(thread_id text, run_id text DEFAULT NULL::text, reason text DEFAULT NULL::text, scope text DEFAULT ''::text) returns integer language sql as '';
create function agui.restore(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.retry(job text DEFAULT NULL::text, thread_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.retry_webhook_failures(webhook text, event_id text DEFAULT NULL::text) returns bigint language sql as '';
create function agui.rotate_webhook_secret(name text, secret text DEFAULT NULL::text, keep_old interval DEFAULT '1 day'::interval) returns text language sql as '';
create function agui.run_tool_calls(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns SETOF agui.tool_call language sql as '';
create function agui.runs(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.run_info language sql as '';
create function agui.save_checkpoint(thread_id text, checkpoint_id text, document json, parent_id text DEFAULT NULL::text, namespace text DEFAULT ''::text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.save_session(session json, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.save_session_state(thread_id text, key text, document json, run_id text DEFAULT NULL::text, expected_version bigint DEFAULT 0, overwrite boolean DEFAULT false, scope text DEFAULT ''::text) returns bigint language sql as '';
create function agui.save_sessions(sessions json, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.search(query text, role text DEFAULT NULL::text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, max_rows integer DEFAULT 20, cursor text DEFAULT NULL::text, marks text[] DEFAULT '{**,**}'::text[], scope text DEFAULT NULL::text) returns SETOF agui.found_text language sql as '';
create function agui.session_messages(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text) returns SETOF agui.session_message language sql as '';
create function agui.session_runs(thread_id text, messages json, run_prefix text DEFAULT 'session-run-'::text) returns SETOF agui.session_run language sql as '';
create function agui.session_states(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text, after_key text DEFAULT NULL::text, page_bytes integer DEFAULT NULL::integer) returns SETOF agui.session_document language sql as '';
create function agui.session_versions(thread_id text, key text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text, before_version bigint DEFAULT NULL::bigint, page_bytes integer DEFAULT NULL::integer) returns SETOF agui.session_document language sql as '';
create function agui.set_hold(thread_id text, reason text, scope text DEFAULT ''::text) returns agui.hold language sql as '';
create function agui.set_retention(action text, older_than interval, scope text DEFAULT NULL::text) returns agui.retention language sql as '';
create function agui.set_setting(name text, value text) returns void language sql as '';
create function agui.set_thread(thread_id text, title text DEFAULT NULL::text, agent text DEFAULT NULL::text, archived boolean DEFAULT NULL::boolean, metadata jsonb DEFAULT NULL::jsonb, create_if_missing boolean DEFAULT false, scope text DEFAULT ''::text) returns agui.thread_row language sql as '';
create function agui.settle(thread_id text, max_time interval DEFAULT '00:00:01'::interval, scope text DEFAULT ''::text) returns boolean language sql as '';
create function agui.state(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT ''::text) returns json language sql as '';
create function agui.stats(exact boolean DEFAULT false) returns agui.stats_row language sql as '';
create function agui.status(thread_id text, run_id text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.run_status language sql as '';
create function agui.subagents(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, lineage boolean DEFAULT true, scope text DEFAULT ''::text) returns SETOF agui.subagent language sql as '';
create function agui.take_over_webhooks(name text DEFAULT NULL::text) returns bigint language sql as '';
create function agui.thread_key(scope text, thread_id text) returns uuid language sql as '';
create function agui.thread_page(agent text DEFAULT NULL::text, archived boolean DEFAULT false, title text DEFAULT NULL::text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, status text DEFAULT NULL::text, head_only boolean DEFAULT false, metadata jsonb DEFAULT NULL::jsonb, max_rows integer DEFAULT 50, cursor text DEFAULT NULL::text, scope text DEFAULT ''::text) returns agui.thread_page_row language sql as '';
create function agui.threads(agent text DEFAULT NULL::text, archived boolean DEFAULT false, title text DEFAULT NULL::text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, status text DEFAULT NULL::text, head_only boolean DEFAULT false, metadata jsonb DEFAULT NULL::jsonb, max_rows integer DEFAULT 50, cursor text DEFAULT NULL::text, scope text DEFAULT ''::text) returns SETOF agui.thread_row language sql as '';
create function agui.tool_calls(thread_id text, run_id text DEFAULT NULL::text, at_seq bigint DEFAULT NULL::bigint, at_time timestamp with time zone DEFAULT NULL::timestamp with time zone, after_seq bigint DEFAULT 0, scope text DEFAULT ''::text) returns SETOF agui.tool_call language sql as '';
create function agui.tool_report(since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, scope text DEFAULT NULL::text) returns TABLE(tool text, calls bigint, failed bigint, cut_off bigint, waiting bigint, median_duration interval, p95_duration interval, last_error text) language sql as '';
create function agui.unmap_role(role_name name) returns boolean language sql as '';
create function agui.unmap_usage() returns boolean language sql as '';
create function agui.usage(thread_id text, run_id text DEFAULT NULL::text, lineage boolean DEFAULT true, whole_thread boolean DEFAULT false, scope text DEFAULT ''::text) returns SETOF agui.model_usage language sql as '';
create function agui.verify(thread_id text, scope text DEFAULT ''::text) returns SETOF agui.verify_row language sql as '';
create function agui.waiting(max_rows integer DEFAULT 100, agent text DEFAULT NULL::text, scope text DEFAULT NULL::text) returns SETOF agui.interrupt_fact language sql as '';
create function agui.webhook_failures(webhook text DEFAULT NULL::text, max_rows integer DEFAULT 1000) returns SETOF agui.webhook_failure language sql as '';
create function agui.webhooks() returns SETOF agui.webhook_info language sql as '';
