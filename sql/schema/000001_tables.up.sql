-- Names are not resolved in the schemas of the caller's search_path, where others may create
-- objects. The end of the file restores the path.
do $$
begin
    perform pg_catalog.set_config('agui.search_path', pg_catalog.current_setting('search_path'), false);
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false);
end
$$;

-- pgagui stores AG-UI event streams in PostgreSQL.
--
--   thread    a conversation. Its key is derived from (scope, thread_id), so finding its rows needs no
--             look-up.
--   run       a node of the tree of the thread: what an agent did between RUN_STARTED and
--             RUN_FINISHED or RUN_ERROR.
--   batch     the log: the events of one append call, verbatim. seq numbers the events of a thread
--             1, 2, 3, … in commit order.
--   snapshot  the fold of the log after a run (messages, state, interrupts), so that a read does not
--             have to fold all of it.
--   message_version  the messages that snapshots refer to, each version once, however many snapshots
--             and branches share it.
--   thread_activity  what a list of threads shows of each: when it was active, title, agent, metadata.
--   erasure   the tombstones of erased threads: without their names, with when and by whom.
--
--   run_input  the inputs that runs were begun with, beside their events; input_part has what several
--             inputs share.
--
-- thread, run, batch and the inputs are the source of truth: events are only ever added, unless a
-- whole thread is erased. message_version and snapshot can be rebuilt from them. Beside the events, agents keep:
--
--   session_state  a JSON document for each thread, run and key, verbatim, in its last versions;
--                  read along the lineage of a run.
--   session_key    the keys of a thread, which number their versions.
--   checkpoint     states of workflow engines and graphs, each after its parent; checkpoint_write has
--                  what tasks wrote after one.
--   channel        the channels in which graphs keep their state: channel_value has the versions of a
--                  value, channel_part the elements of arrays, each once.
--
-- Users call and read the schema agui; agui_internal is its implementation. The functions come with
-- the next migration.
do $$
begin
    if current_setting('server_version_num')::int < 150000 then
        raise exception 'pgagui needs PostgreSQL 15 or newer, this server is %', current_setting('server_version');
    end if;
    if getdatabaseencoding() <> 'UTF8' then
        raise exception 'pgagui needs a database with encoding UTF8 (events are JSON text, kept byte for byte), "%" has %',
            current_database(), getdatabaseencoding();
    end if;
end
$$;

-- "create schema if not exists" needs the privilege to create schemas even if the schema exists.
do $$
begin
    if to_regnamespace('agui') is null then
        create schema agui;
    end if;
    if to_regnamespace('agui_internal') is null then
        create schema agui_internal;
    end if;
end
$$;

comment on schema agui is
    'pgagui: AG-UI event streams as an append-only log, a git-like tree of runs, and snapshots '
    'folded from them. Users call and read the objects of this schema.';
comment on schema agui_internal is
    'pgagui: the implementation of the schema agui. It may change with any release, so do not call '
    'it.';

create table agui.thread (
    thread_key uuid primary key,
    scope      text not null,
    thread_id  text not null,
    created_at timestamptz not null default clock_timestamp()
);

comment on table agui.thread is 'A conversation (AG-UI threadId) of a scope.';
comment on column agui.thread.thread_key is
    'agui.thread_key(scope, thread_id): 64 bits that hash the scope, then 64 bits that hash scope '
    'and thread id. The threads of a scope are one range of keys.';
comment on column agui.thread.scope is
    'The tenant or user that the thread belongs to; empty if scopes are not used. A name only: '
    'protection needs row-level security.';
comment on column agui.thread.thread_id is 'threadId of the protocol, unique in its scope.';
comment on column agui.thread.created_at is
    'When the first event was appended, or session state or a checkpoint was saved.';

create index thread_by_id on agui.thread using hash (thread_id);

comment on index agui.thread_by_id is
    'For queries on the view agui.event and for people, who have the id and not the key.';

create table agui.run (
    thread_key uuid not null references agui.thread,
    run_no     int not null,
    parent_no  int,
    parent_given boolean not null default false,
    run_id     text not null,
    status     text not null,
    first_seq  bigint not null,
    last_seq   bigint,
    end_seq    bigint,
    started_at timestamptz not null,
    ended_at   timestamptz,
    seen_at    timestamptz,
    has_heartbeat boolean not null default false,
    open_from  int not null default 1,
    stop_requested_at timestamptz,
    stop_reason text,
    cut_off_reason text,
    n          bigint,
    log_bytes  bigint,
    repacked_at timestamptz,
    changed_in xid8,
    primary key (thread_key, run_no),
    -- The order of the columns matters. Otherwise a query for one run by its number might use this
    -- index and read all runs of the thread: under row-level security the planner expects too few
    -- of them.
    unique (run_id, thread_key),
    foreign key (thread_key, parent_no) references agui.run,
    constraint run_parent_is_older check (parent_no < run_no),
    constraint run_status_is_known check (status in ('running', 'finished', 'interrupted', 'cancelled', 'failed', 'cut_off')),
    constraint run_has_bounds_once_ended check (status = 'running' or (last_seq >= first_seq and ended_at is not null)),
    constraint run_reasons_are_not_empty check (cut_off_reason <> '' and stop_reason <> '')
);

-- A run leaves three dead rows with their index entries, also in the indexes of queues, which all
-- jobs read. By default they may grow to a fifth of the table before a vacuum.
alter table agui.run set (autovacuum_vacuum_scale_factor = 0.05);

create index run_in_progress on agui.run (thread_key, run_no) where status = 'running';
create index run_to_compact on agui.run (ended_at) where log_bytes is null and status <> 'running';
create index run_to_repack on agui.run (ended_at) where repacked_at is null and status <> 'running';
create index run_by_status on agui.run (thread_key, status, ended_at)
    where status in ('interrupted', 'cancelled', 'failed', 'cut_off');
-- The first part of thread_key is the hash of the scope (agui_internal.first_key).
create index run_by_time on agui.run (left(thread_key::text, 18) collate "C", status, ended_at, thread_key, run_no)
    where status in ('interrupted', 'cancelled', 'failed', 'cut_off');
create index run_without_end on agui.run (thread_key, run_no) where end_seq is null and status <> 'running';
create index run_children on agui.run (thread_key, parent_no) where parent_no is not null;
create index run_changed on agui.run (changed_in) where changed_in is not null;

comment on table agui.run is 'A run of an agent: a node of the tree of its thread.';
comment on column agui.run.run_no is
    'The runs of a thread, numbered 1, 2, 3, … in the order in which they began. A parent has a '
    'smaller number than its children.';
comment on column agui.run.parent_no is 'The run that this one continues from; null: a root.';
comment on column agui.run.parent_given is
    'Whether its writer gave the parent, or that there is none, beside the events. Otherwise the '
    'parent is the one that RUN_STARTED names, else the run begun before it.';
comment on column agui.run.run_id is 'runId of the protocol, unique in its thread.';
comment on column agui.run.status is
    'running; by its last end, even if events follow it: finished (RUN_FINISHED), interrupted (its '
    'outcome is interrupt), cancelled (its outcome is cancelled) or failed (RUN_ERROR); or cut_off: '
    'ended on behalf of its writer.';
comment on column agui.run.first_seq is 'seq of its first event.';
comment on column agui.run.last_seq is
    'seq of its last event; null while it is running. Runs that were in progress at the same time '
    'interleave in the log.';
comment on column agui.run.end_seq is
    'seq of its last RUN_FINISHED or RUN_ERROR; null while it is running, and in rows of a store '
    'that did not have the column, until agui.reap finds it.';
comment on column agui.run.started_at is 'recorded_at of its first event.';
comment on column agui.run.ended_at is
    'recorded_at of its last event, even if that follows the end; null while it is running.';
comment on column agui.run.seen_at is 'When its writer last called agui.keep_alive for it.';
comment on column agui.run.has_heartbeat is
    'Whether its writer calls agui.keep_alive regularly. As long as it does, the lease is the '
    'setting heartbeat_lease, else the setting lease.';
comment on column agui.run.open_from is
    'No run of the thread with a smaller number was in progress when this one began, or has been '
    'since. A search for runs in progress begins here.';
comment on column agui.run.stop_requested_at is
    'Time of the first stop request (agui.request_stop); null: there is none.';
comment on column agui.run.stop_reason is 'Reason given with the stop request; null: none.';
comment on column agui.run.cut_off_reason is
    'Reason why it was ended on behalf of its writer, who had gone; null: it was not.';
comment on column agui.run.n is
    'Number of its events, counted when compaction processed the run; null: not processed yet.';
comment on column agui.run.log_bytes is
    'Stored (compressed) size in bytes of its batches and its input, measured when compaction '
    'processed the run and when it was repacked; null: not processed yet.';
comment on column agui.run.repacked_at is
    'When its batches were joined into larger ones; null: not yet.';
comment on column agui.run.changed_in is
    'The transaction in which it began, ended, or took events after its end, whichever was last; '
    'tokens and jobs do not set it. A reader of changes has seen all with a number below '
    'pg_snapshot_xmin(pg_current_snapshot()). Numbers compare only in the cluster that assigned '
    'them. Null: no such transaction in this cluster.';
comment on index agui.run_in_progress is
    'The runs in progress of a thread, read whenever a run begins.';
comment on index agui.run_by_status is
    'Whether a run of a thread ended with a status, and when.';
comment on index agui.run_by_time is
    'The runs of a scope that ended with a status, by time: a page of agui.list_runs.';
comment on index agui.run_without_end is
    'The queue of agui_internal.find_ends; empty in a store that was made with the column end_seq.';
comment on index agui.run_to_compact is
    'The queue of compaction: ended runs that it has not processed yet, parents before children.';
comment on index agui.run_children is
    'The runs that continue from a run. Without it the foreign key to the parent makes agui.erase '
    'quadratic.';
comment on index agui.run_changed is
    'The runs in the order of the transactions that changed them last.';
comment on index agui.run_to_repack is
    'The queue of agui.repack: ended runs whose batches are not joined yet.';

create table agui.batch (
    thread_key  uuid not null,
    first_seq   bigint not null,
    recorded_at timestamptz not null,
    n           int not null,
    run_no      int not null,
    events      json not null,
    earlier_us  int[],
    text_bytes  int,
    hash        bytea,
    links       int[],
    -- No check constraints: they would take 6 % of the append of a token. agui.verify checks the
    -- same conditions.
    primary key (thread_key, first_seq)
);

-- Compressed from 2 KB on, and in its row as long as that fits into a page, so that a thread is
-- read in one range scan.
alter table agui.batch alter column events set storage main;
alter table agui.batch alter column earlier_us set storage main;
alter table agui.batch alter column links set storage main;

-- agui.repack deletes what it has joined, nearly all batches of a store. New ones take their space
-- only after a vacuum.
alter table agui.batch set (autovacuum_vacuum_scale_factor = 0.05);

comment on table agui.batch is
    'The log: a row holds the events of one append call, or of several that agui.repack joined. '
    'Triggers refuse every other change.';
comment on column agui.batch.first_seq is 'seq of the first event in the batch; the next batch of the thread begins at first_seq + n.';
comment on column agui.batch.recorded_at is
    'When its last event was appended; never before the previous batch of the thread.';
comment on column agui.batch.n is 'Number of events in the batch.';
comment on column agui.batch.run_no is
    'The run that the events belong to. No foreign key, because it would slow down every append; '
    'agui.verify checks it.';
comment on column agui.batch.events is
    'JSON array of the events as they were appended. json and not jsonb, so that every byte of an '
    'event is preserved, also what jsonb cannot hold.';
comment on column agui.batch.text_bytes is
    'Size of the text of events in bytes if it may be compressed, so that a page of the log can be '
    'limited without decompressing it; null: about the stored size.';
comment on column agui.batch.earlier_us is
    'For each event, how many microseconds before recorded_at it was appended, in a batch that '
    'agui.repack joined or agui.import_events made; null: all at once.';
comment on column agui.batch.hash is
    'In a chained thread (agui.enable_chain): the hash of the last link of the batch '
    '(agui_internal.chain_link); null: the thread is not chained, or was not when the batch was '
    'appended.';
comment on column agui.batch.links is
    'In a chained batch that agui.repack joined: the number of events in each of its links; null: '
    'the batch is one link.';

create table agui.run_input (
    thread_key uuid not null,
    run_no     int not null,
    input      json,
    hash       bytea,
    bytes      int,
    skeleton   text[],
    sections   jsonb,
    part_bytes int,
    split_at   timestamptz,
    primary key (thread_key, run_no),
    foreign key (thread_key, run_no) references agui.run,
    constraint run_input_is_whole_or_in_parts check (
        case
            when input is not null then num_nonnulls(skeleton, sections, part_bytes) = 0
            else num_nulls(hash, bytes, skeleton, sections, part_bytes, split_at) = 0
        end
    )
);

create index run_input_to_split on agui.run_input (thread_key, run_no) where split_at is null;

-- As in agui.batch.
alter table agui.run_input alter column input set storage main;

comment on table agui.run_input is
    'The input of a run (RunAgentInput) that its writer gave beside the events, because its '
    'RUN_STARTED carries none. It counts as the input of RUN_STARTED unless the first RUN_STARTED '
    'carries an object itself. A row is whole (input), or in parts (skeleton and sections), because '
    'clients send the whole conversation with each run. The view agui.input has the text of both, '
    'which never changes.';
comment on column agui.run_input.input is 'The input, byte for byte; null: the row is in parts.';
comment on column agui.run_input.hash is
    'sha256 of the text of the input, which repeated calls are compared with. Null: a whole row of a '
    'store that did not have the column.';
comment on column agui.run_input.bytes is
    'Size of the text of the input in bytes. Null: a whole row of a store that did not have the '
    'column.';
comment on column agui.run_input.skeleton is
    'In parts: the pieces of the text before, between and after the sections.';
comment on column agui.run_input.sections is
    'In parts: a JSON array of what stands between two pieces of the skeleton: {"kind", "separator", '
    '"part_nos"}. part_nos are the parts in order (agui.input_part), as an array of ranges; the '
    'separator stands between them.';
comment on column agui.run_input.part_bytes is
    'In parts: stored size in bytes of the parts that came with this input, because none before it '
    'had them.';
comment on column agui.run_input.split_at is
    'When the input was split into parts, or found to stay whole: it is small or very large, or '
    'the parts would not give the same text. Null: not yet.';
comment on index agui.run_input_to_split is 'The queue of agui_internal.split_inputs.';

create table agui.input_part (
    thread_key uuid not null references agui.thread,
    kind       text collate "C" not null,
    part_no    int not null,
    print      bigint not null,
    bytes      int not null,
    message_id text,
    body       json not null,
    primary key (thread_key, kind, part_no),
    constraint input_part_kind_is_known check (kind in ('message', 'state', 'tools', 'context'))
);

create index input_part_by_print on agui.input_part (print);

alter table agui.input_part alter column body set storage main;
-- By default only rows of 2 KB and more are compressed. Most messages are smaller.
alter table agui.input_part set (toast_tuple_target = 256);

comment on table agui.input_part is
    'Parts of the inputs of a thread, each stored once: run_input.sections refers to them. So a '
    'conversation that is sent with each of its runs takes the bytes of its messages, not of each '
    'input.';
comment on column agui.input_part.kind is
    'The member of the input that the part is from: message (an element of messages), state (an '
    'object with one member of the state), tools or context (the whole value).';
comment on column agui.input_part.part_no is
    'The parts of a kind numbered 1, 2, 3, … in the order in which they were stored. So a history '
    'that grows is one range.';
comment on column agui.input_part.print is
    'agui_internal.part_print of the key of the thread, the kind and the body, by which an equal part '
    'is found. The bodies are compared as well.';
comment on column agui.input_part.bytes is
    'Size of the text in bytes, as folds count it: a backslash, \u0000 and half of a surrogate pair count 7.';
comment on column agui.input_part.message_id is
    'id of a message, as the fold decodes it; null if it has none, or if the part is no message.';
comment on column agui.input_part.body is 'The part, byte for byte.';
comment on index agui.input_part_by_print is 'Finds the stored part that equals a new one.';

create table agui.thread_activity (
    -- By size, so that rows have no gaps for alignment.
    thread_key    uuid primary key references agui.thread,
    scope_key     bigint not null,
    active_at     timestamptz not null,
    written_in    xid8,
    writes        smallint not null default 0,
    archived      boolean not null default false,
    title         text,
    derived_title text,
    agent         text,
    metadata      jsonb not null default '{}',
    constraint thread_activity_metadata_is_an_object check (jsonb_typeof(metadata) = 'object')
);

-- Ascending, although lists descend: new entries then go to the end of the range of their scope,
-- where pages fill up. At its beginning each page would stay half empty.
create index thread_activity_by_time on agui.thread_activity (scope_key, active_at, thread_key) where not archived;
create index thread_activity_archived on agui.thread_activity (scope_key, active_at, thread_key) where archived;

comment on table agui.thread_activity is
    'What lists show of each thread: when it was active, and what agui.set_thread sets. The '
    'beginning and the end of a run update it; the events in between do not.';
comment on column agui.thread_activity.scope_key is 'The first 64 bits of thread_key, as a number: the hash of the scope.';
comment on column agui.thread_activity.archived is 'Whether lists leave the thread out by default.';
comment on column agui.thread_activity.active_at is
    'When a run of the thread last began or ended, as in agui.run; without runs, when the thread '
    'was created.';
comment on column agui.thread_activity.title is 'The title that was set; null: none.';
comment on column agui.thread_activity.derived_title is
    'The beginning of the first user message, shown if no title is set; null: not known yet.';
comment on column agui.thread_activity.agent is 'The agent that the thread belongs to; null: not set.';
comment on column agui.thread_activity.metadata is
    'What an application stores with the thread, a JSON object.';
comment on column agui.thread_activity.written_in is
    'For agui.append: the transaction that set active_at last; null: that transaction has set it '
    'for the last time.';
comment on column agui.thread_activity.writes is 'How often that transaction has set it.';
comment on index agui.thread_activity_by_time is
    'A page of the threads of a scope, most recent activity first.';
comment on index agui.thread_activity_archived is
    'The same for archived threads.';

create table agui.message_version (
    thread_key uuid not null references agui.thread,
    message_no int not null,
    part_no    int,
    message_id text,
    role       text,
    body       json,
    primary key (thread_key, message_no),
    constraint message_version_is_here_or_a_part check (num_nonnulls(body, part_no) = 1)
);

comment on table agui.message_version is
    'Versions of messages that snapshots refer to. A version is written once and shared by all '
    'snapshots and branches that have it. The view agui.message has the text of all.';
comment on column agui.message_version.message_no is 'Number of the version in its thread.';
comment on column agui.message_version.part_no is
    'The part of inputs (agui.input_part of the kind message) that has the same text, which is not '
    'stored twice; null: body has it. No foreign key, because it would need the kind in each row; '
    'agui.verify checks it.';
comment on column agui.message_version.message_id is 'id of the message, decoded; null if it has none.';
comment on column agui.message_version.role is 'role of the message, decoded; null if it has none.';
comment on column agui.message_version.body is
    'The message in the form that AG-UI clients use; null: part_no has it.';

create table agui.snapshot (
    thread_key  uuid not null,
    run_no      int not null,
    through_seq bigint not null,
    message_nos int4range[] not null,
    state       json not null,
    interrupts  json not null,
    lanes       json,
    created_at  timestamptz not null default clock_timestamp(),
    primary key (thread_key, run_no),
    foreign key (thread_key, run_no) references agui.run
);

comment on table agui.snapshot is
    'The fold of the lineage of a run, its events up to through_seq included. Can be deleted and '
    'rebuilt at any time.';
comment on column agui.snapshot.through_seq is
    'seq of the last event of the run that the snapshot includes.';
comment on column agui.snapshot.message_nos is 'Its messages in order, as ranges of message.message_no.';
comment on column agui.snapshot.state is 'The state that the agent and its UI share.';
comment on column agui.snapshot.interrupts is
    'The interrupts that wait for an answer, as a JSON array.';
comment on column agui.snapshot.lanes is
    'Chunk streams (TEXT_MESSAGE_CHUNK, …) that are open at through_seq, so that the fold can '
    'continue between two chunks; null: none.';

create table agui.session_key (
    thread_key   uuid not null references agui.thread,
    key          text not null,
    last_version bigint not null,
    saved_at     timestamptz not null,
    primary key (thread_key, key)
);

comment on table agui.session_key is
    'A key of the session state of a thread. The writer of its next version locks this row, so '
    'versions are numbered without gaps, in commit order.';
comment on column agui.session_key.key is
    'The name that a part of the agent gave to its documents, for example memory.';
comment on column agui.session_key.last_version is
    'Number of the version saved last, at any run. A number is never reused, even if its version '
    'was pruned.';
comment on column agui.session_key.saved_at is 'When it was saved.';

create table agui.session_state (
    thread_key uuid not null,
    run_no     int not null,
    key        text not null,
    version    bigint not null,
    document   json,
    saved_at   timestamptz not null default clock_timestamp(),
    primary key (thread_key, key, run_no, version),
    unique (thread_key, key, version),
    foreign key (thread_key, key) references agui.session_key
);

-- As in agui.batch: a load of ten documents of 6 KB reads 71 pages, not 101.
alter table agui.session_state alter column document set storage main;

comment on table agui.session_state is
    'Session state: documents that a part of the agent keeps beside the events, one for each '
    'thread, run and key, in their last versions. A run has what was saved nearest to it on its '
    'lineage.';
comment on column agui.session_state.run_no is
    'The run at which it was saved; 0: none, it belongs to the thread itself. No foreign key, '
    'because there is no run 0; agui.verify checks it.';
comment on column agui.session_state.key is 'session_key.key.';
comment on column agui.session_state.version is
    'Numbers the documents of a key in its thread 1, 2, 3, …, whatever the run.';
comment on column agui.session_state.document is
    'The document, byte for byte; null: from this run on there is none, even if earlier runs have '
    'one.';
comment on column agui.session_state.saved_at is 'When it was saved.';

create table agui.checkpoint (
    thread_key    uuid not null references agui.thread,
    checkpoint_no bigint not null,
    namespace     text collate "C" not null,
    checkpoint_id text collate "C" not null,
    parent_no     bigint,
    run_id        text,
    document      json,
    metadata      json,
    saved_at      timestamptz not null default clock_timestamp(),
    primary key (thread_key, checkpoint_no),
    unique (thread_key, namespace, checkpoint_id),
    constraint checkpoint_parent_is_another check (parent_no <> checkpoint_no)
);

alter table agui.checkpoint alter column document set storage main;

comment on table agui.checkpoint is
    'The state of a workflow engine or a graph at some point of a conversation, which continues from '
    'the state in its parent. Texts compare by code point, so that ids that begin with a time are in '
    'the order of time.';
comment on column agui.checkpoint.checkpoint_no is
    'The checkpoints of a thread numbered 1, 2, 3, … in commit order. One of agui.put_checkpoint gets '
    'its number when it is first named, also by a child or by a write.';
comment on column agui.checkpoint.namespace is
    'Separates the checkpoints of several workflows of a thread; empty by default.';
comment on column agui.checkpoint.checkpoint_id is
    'The name that the engine gave it, unique in its namespace.';
comment on column agui.checkpoint.parent_no is
    'The checkpoint that it continues from, in the same namespace; null: a root. It has a smaller '
    'number, unless agui.put_checkpoint stored it later than its child.';
comment on column agui.checkpoint.run_id is
    'The run that the engine was working on, as the caller named it; null: none was named.';
comment on column agui.checkpoint.document is
    'The checkpoint, byte for byte. Null: its writes, or a child, came before the checkpoint, which '
    'does not exist for readers until agui.put_checkpoint stores it.';
comment on column agui.checkpoint.metadata is
    'What a graph notes about the checkpoint, an object, byte for byte. Null: the checkpoint is from '
    'agui.save_checkpoint and cannot change.';
comment on column agui.checkpoint.saved_at is 'When it was saved.';
create table agui.channel (
    thread_key uuid not null references agui.thread,
    channel_no int not null,
    namespace  text collate "C" not null,
    name       text collate "C" not null,
    parts      int not null default 0,
    primary key (thread_key, channel_no),
    -- The key comes last. Otherwise a look-up by number, as foreign keys do, might use this index and
    -- read all channels of the thread.
    unique (namespace, name, thread_key)
);

comment on table agui.channel is
    'The channels of the graphs of a thread. A graph keeps its state in channels, each with a value '
    'and a version.';
comment on column agui.channel.channel_no is 'The channels of a thread numbered 1, 2, 3, …';
comment on column agui.channel.namespace is 'The namespace of the checkpoints that the channel belongs to.';
comment on column agui.channel.name is 'The name of the channel, unique in its namespace.';
comment on column agui.channel.parts is 'Number of its rows in agui.channel_part.';

create table agui.channel_part (
    thread_key uuid not null,
    channel_no int not null,
    part_no    int not null,
    print      bigint not null,
    body       json not null,
    primary key (thread_key, channel_no, part_no),
    foreign key (thread_key, channel_no) references agui.channel
);

create index channel_part_by_print on agui.channel_part (print);

alter table agui.channel_part alter column body set storage main;

comment on table agui.channel_part is
    'The elements of the arrays in a channel, each stored once: versions of a value, and writes, '
    'refer to them. So a list that grows takes the bytes of its elements, not of each of its versions.';
comment on column agui.channel_part.channel_no is 'The channel that the part belongs to.';
comment on column agui.channel_part.part_no is 'The parts of a channel numbered 1, 2, 3, … in the order in which they were stored.';
comment on column agui.channel_part.print is
    'agui_internal.part_print of the key of the thread, the channel and the body, by which an equal part '
    'is found. The bodies are compared as well.';
comment on column agui.channel_part.body is 'The element, byte for byte.';
comment on index agui.channel_part_by_print is 'Finds the stored part that equals a new one.';

create table agui.channel_value (
    thread_key uuid not null,
    channel_no int not null,
    version    text collate "C" not null,
    type       text,
    part_nos   int4range[],
    body       json,
    bytes      bytea,
    primary key (thread_key, channel_no, version),
    foreign key (thread_key, channel_no) references agui.channel,
    constraint channel_value_has_one_form check (num_nonnulls(part_nos, body, bytes) = 1 and (bytes is null) = (type is null))
);

alter table agui.channel_value alter column body set storage main;

comment on table agui.channel_value is
    'The values of the channels, each version once. The document of a checkpoint says which version of '
    'each channel belongs to it (its member channel_versions).';
comment on column agui.channel_value.channel_no is 'The channel that has the value.';
comment on column agui.channel_value.version is 'The version, as text.';
comment on column agui.channel_value.type is 'How the graph encoded a value that is no JSON; null: it is JSON.';
comment on column agui.channel_value.part_nos is 'An array: its elements in order, as ranges of channel_part.part_no.';
comment on column agui.channel_value.body is 'Any other JSON value, byte for byte.';
comment on column agui.channel_value.bytes is 'A value that is no JSON.';

create table agui.checkpoint_write (
    thread_key    uuid not null,
    checkpoint_no bigint not null,
    task_id       text collate "C" not null,
    place         int not null,
    task_path     text collate "C" not null,
    channel_no    int not null,
    type          text,
    part_nos      int4range[],
    body          json,
    bytes         bytea,
    primary key (thread_key, checkpoint_no, task_id, place),
    foreign key (thread_key, checkpoint_no) references agui.checkpoint,
    constraint checkpoint_write_has_one_form check (num_nonnulls(part_nos, body, bytes) = 1 and (bytes is null) = (type is null))
);

alter table agui.checkpoint_write alter column body set storage main;

comment on table agui.checkpoint_write is
    'What the tasks after a checkpoint wrote to channels, before the next checkpoint has it: after a '
    'crash a graph does not repeat the tasks that succeeded.';
comment on column agui.checkpoint_write.checkpoint_no is 'The checkpoint that the task continued from.';
comment on column agui.checkpoint_write.task_id is 'The task, as the graph names it.';
comment on column agui.checkpoint_write.place is
    'The place in the writes of the task, from 0 on. Negative: a special channel, such as the one for '
    'errors, which a later call overwrites.';
comment on column agui.checkpoint_write.task_path is
    'The path of the task in the graph. Writes apply in the order (task_path, task_id, place).';
comment on column agui.checkpoint_write.channel_no is 'The channel that the task wrote to.';
comment on column agui.checkpoint_write.type is 'How the graph encoded a value that is no JSON; null: it is JSON.';
comment on column agui.checkpoint_write.part_nos is 'An array: its elements in order, as ranges of channel_part.part_no.';
comment on column agui.checkpoint_write.body is 'Any other JSON value, byte for byte.';
comment on column agui.checkpoint_write.bytes is 'A value that is no JSON.';

create table agui.erasure (
    erased_key uuid not null,
    erased_at  timestamptz not null default clock_timestamp(),
    erased_by  text not null default session_user,
    reason     text,
    runs       int not null,
    events     bigint not null,
    allowed_at timestamptz,
    allowed_by text,
    primary key (erased_key, erased_at)
);

comment on table agui.erasure is
    'The tombstones of erased threads: when, by whom and why, without their names. Writes to a '
    'thread are refused until allowed_at is set.';
comment on column agui.erasure.erased_key is
    'A salted hash of the key of the thread (agui_internal.erasure_key), which identifies the '
    'thread to a caller who names it. Without the salt no name can be tested against it. The first '
    'half depends on the scope only, as in thread_key.';
comment on column agui.erasure.erased_at is 'When it was erased.';
comment on column agui.erasure.erased_by is 'The role that was logged in.';
comment on column agui.erasure.reason is 'The reason that the caller gave.';
comment on column agui.erasure.runs is 'Number of runs that it had.';
comment on column agui.erasure.events is 'Number of events that it had.';
comment on column agui.erasure.allowed_at is
    'When agui.lift_erasure permitted writes; null: they are refused.';
comment on column agui.erasure.allowed_by is 'The role that was logged in at that time.';

create table agui_internal.erasure_salt (
    only_row boolean primary key default true,
    salt     bytea not null,
    constraint erasure_salt_has_one_row check (only_row)
);

comment on table agui_internal.erasure_salt is
    'The salt that is hashed with the keys of erased threads, in one row, for the owner only. '
    'agui_internal.define_settings() creates it. With it and agui.erasure, or with a whole dump, '
    'names can be tested; without it, erased threads are no longer recognized.';
comment on column agui_internal.erasure_salt.only_row is 'True: there is one row.';
comment on column agui_internal.erasure_salt.salt is 'Random bytes.';

create table agui_internal.chained_scope (
    scope  text not null,
    is_all boolean not null,
    since  timestamptz not null default clock_timestamp(),
    primary key (scope, is_all),
    constraint chained_scope_is_one_or_all check (scope = '' or not is_all)
);

comment on table agui_internal.chained_scope is 'The scopes whose new threads are chained (agui.enable_chain).';
comment on column agui_internal.chained_scope.scope is 'The scope; empty for all scopes.';
comment on column agui_internal.chained_scope.is_all is 'Whether the row is for all scopes.';
comment on column agui_internal.chained_scope.since is 'When the chain was enabled.';

create table agui_internal.setting (
    name          text primary key,
    value         numeric not null,
    unit          text not null,
    default_value numeric not null,
    min_value     numeric not null,
    max_value     numeric not null,
    description   text not null,
    constraint setting_unit_is_known check (unit in ('seconds', 'bytes', 'count')),
    constraint setting_is_in_range check (value between min_value and max_value)
);

comment on table agui_internal.setting is
    'The settings of this database: leases and limits. agui.setting shows them, agui.set_setting changes them, agui_internal.define_settings() adds them.';
comment on column agui_internal.setting.name is 'The name of the setting.';
comment on column agui_internal.setting.value is 'Current value, in the unit.';
comment on column agui_internal.setting.unit is 'seconds, bytes or count.';
comment on column agui_internal.setting.default_value is 'Default value.';
comment on column agui_internal.setting.min_value is 'Smallest permitted value.';
comment on column agui_internal.setting.max_value is 'Largest permitted value.';
comment on column agui_internal.setting.description is 'Effect of the setting.';

create table agui_internal.uptime (
    only_row   boolean primary key default true,
    up_since   timestamptz not null,
    checked_at timestamptz not null,
    timeline   text,
    constraint uptime_has_one_row check (only_row)
);

comment on table agui_internal.uptime is
    'Since when writers could reach the server, in one row: leases count from then on. '
    'agui.keep_alive and agui.reap write it, at most every 10 seconds.';
comment on column agui_internal.uptime.only_row is 'True: there is one row.';
comment on column agui_internal.uptime.up_since is
    'When the server was first reached after an outage: a period without calls, or a promotion. '
    '-infinity: there was none yet.';
comment on column agui_internal.uptime.checked_at is
    'When it was last reached, with a precision of 10 seconds.';
comment on column agui_internal.uptime.timeline is
    'The timeline of the write-ahead log at that time, which changes with a promotion; null: this '
    'server does not provide it.';

create table agui_internal.claim (
    thread_key    uuid not null,
    run_id        text not null,
    parent_run_id text,
    input_hash    bytea,
    parallel      boolean not null,
    claimant      text not null,
    claimed_at    timestamptz not null,
    seen_at       timestamptz not null,
    stop_requested_at timestamptz,
    stop_reason   text,
    primary key (thread_key, run_id),
    constraint claim_reason_is_not_empty check (stop_reason <> '')
);

comment on table agui_internal.claim is
    'The places of runs that will begin (agui.claim_run). The beginning of the run deletes its '
    'claim. A claim whose lease has ended counts as none. No foreign key: the thread may begin '
    'with the run.';
comment on column agui_internal.claim.run_id is 'runId of the run that will begin.';
comment on column agui_internal.claim.parent_run_id is
    'The parent that the run will have, determined when it was claimed; null: none.';
comment on column agui_internal.claim.input_hash is
    'sha256 of the text of the input, by which a repeated request is recognized; null: no input.';
comment on column agui_internal.claim.parallel is
    'Whether the run may begin while others are in progress. If so, other runs may begin, too.';
comment on column agui_internal.claim.claimant is
    'A random token of the process that claimed the run. Only with it is the claim released.';
comment on column agui_internal.claim.claimed_at is 'When the run was claimed.';
comment on column agui_internal.claim.seen_at is
    'When it was claimed, or agui.keep_alive last renewed the claim. The lease is the setting '
    'heartbeat_lease.';
comment on column agui_internal.claim.stop_requested_at is
    'Time of the first stop request (agui.request_stop); null: there is none.';
comment on column agui_internal.claim.stop_reason is 'Reason given with the stop request; null: none.';

create table agui_internal.job_note (
    job        text not null,
    thread_key uuid not null,
    run_no     int not null,
    attempts   int not null,
    code       text,
    error      text,
    next_at    timestamptz,
    noted_at   timestamptz not null default clock_timestamp(),
    step_no    bigint,
    speaks_against_run boolean not null default false,
    primary key (job, thread_key, run_no)
);

comment on table agui_internal.job_note is
    'The runs that jobs are processing or failed to process. A job commits a note before it begins '
    'a run, and deletes it in the transaction that does the work. If the job is killed, the note '
    'that remains names the run. The view agui.quarantine shows the notes of failures.';
comment on column agui_internal.job_note.job is
    'compact, compact_running, repack or split: each job has its own notes.';
comment on column agui_internal.job_note.run_no is 'The run; 0: any runs of the thread.';
comment on column agui_internal.job_note.attempts is
    'How often the job has begun the run without finishing it, including an attempt in progress. 0: '
    'the job has begun it only together with others; each of them is tried alone next.';
comment on column agui_internal.job_note.code is 'SQLSTATE of the error; null: none.';
comment on column agui_internal.job_note.error is
    'The last error that speaks against the run, else that of the last attempt; null: the job is '
    'processing the run, or was killed.';
comment on column agui_internal.job_note.speaks_against_run is
    'Whether the error speaks against the run itself (agui_internal.failure_kind), so that reads '
    'that would fold it are refused.';
comment on column agui_internal.job_note.next_at is
    'Time of the next attempt; null: at once, after all other runs.';
comment on column agui_internal.job_note.noted_at is 'When the last attempt began or failed.';
comment on column agui_internal.job_note.step_no is
    'The step of agui.compact that the run belongs to, if its transaction has several; null: it has '
    'one, or has ended. If that process is killed, agui_internal.compaction_progress says in which.';

-- It goes with the table.
create sequence agui_internal.compaction_progress owned by agui_internal.job_note.step_no;

comment on sequence agui_internal.compaction_progress is
    'The step that agui.compact began last (agui_internal.job_note.step_no). A sequence keeps its '
    'value when a transaction ends without a commit.';

create table agui_internal.tenant (
    role_name   name primary key,
    scope       text,
    is_pool     boolean not null default false,
    is_operator boolean not null default false,
    low         uuid,
    high        uuid,
    constraint tenant_is_of_one_kind check ((scope is not null)::int + is_pool::int + is_operator::int = 1),
    constraint tenant_has_a_range check ((low is null) = is_pool and (high is null) = is_pool)
);

comment on table agui_internal.tenant is
    'The threads that a role may see and change while row-level security is on. agui.map_tenant, '
    'agui.map_pool and agui.map_operator write it, and the view agui.tenant shows it. A role '
    'without a row sees none.';
comment on column agui_internal.tenant.role_name is
    'The role, set with SET ROLE or logged in. Members of the role are not included: each has its '
    'own row. A name, so that a dump can be restored before the roles exist.';
comment on column agui_internal.tenant.scope is 'The scope whose threads the role has; null: see is_pool and is_operator.';
comment on column agui_internal.tenant.is_pool is
    'Whether the role has the scope in the setting agui.scope.';
comment on column agui_internal.tenant.is_operator is 'Whether the role has all scopes.';
comment on column agui_internal.tenant.low is
    'The smallest key of a thread that the role has; null for a pool.';
comment on column agui_internal.tenant.high is 'The greatest key of a thread that the role has; null for a pool.';

create table agui_internal.installed_object (
    object       text primary key,
    definition   text not null,
    server_major int not null
);

comment on table agui_internal.installed_object is
    'The definitions of the objects of this install in the catalog when it was made, so that '
    'manual changes are detected. See agui_internal.changed_objects().';
comment on column agui_internal.installed_object.object is
    'Kind and name, in the form that DROP takes: function agui.head(text, text).';
comment on column agui_internal.installed_object.definition is 'A hash of its definition.';
comment on column agui_internal.installed_object.server_major is
    'The major version of PostgreSQL that printed the definition. After pg_upgrade there is '
    'nothing to compare with until "pgagui migrate up" records the definitions.';

-- lz4 compresses several times faster than pglz. Servers built without it keep their default.
do $$
begin
    if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
        alter table agui.batch alter column events set compression lz4;
        alter table agui.batch alter column earlier_us set compression lz4;
        alter table agui.message_version alter column body set compression lz4;
        alter table agui.snapshot alter column state set compression lz4;
        alter table agui.session_state alter column document set compression lz4;
        alter table agui.checkpoint alter column document set compression lz4;
        alter table agui.channel_part alter column body set compression lz4;
        alter table agui.channel_value alter column body set compression lz4;
        alter table agui.checkpoint_write alter column body set compression lz4;
        alter table agui.run_input alter column input set compression lz4;
        alter table agui.input_part alter column body set compression lz4;
    end if;
end
$$;

-- The planner's estimates apply no policy, and EXPLAIN shows them to every role. With statistics of
-- these columns it would tell what other scopes have: frequent values, and the bounds of histograms,
-- letter by letter. Rows are found by thread_key, which keeps its statistics.
alter table agui.thread
    alter column scope set statistics 0,
    alter column thread_id set statistics 0;
alter table agui.thread_activity
    alter column scope_key set statistics 0,
    alter column title set statistics 0,
    alter column derived_title set statistics 0,
    alter column agent set statistics 0;
alter table agui.run
    alter column run_id set statistics 0,
    alter column stop_reason set statistics 0,
    alter column cut_off_reason set statistics 0;
alter table agui.batch alter column hash set statistics 0;
alter table agui.run_input alter column hash set statistics 0;
alter table agui.input_part alter column message_id set statistics 0;
alter table agui.message_version alter column message_id set statistics 0;
alter table agui.session_key alter column key set statistics 0;
alter table agui.session_state alter column key set statistics 0;
alter table agui.checkpoint
    alter column checkpoint_id set statistics 0,
    alter column namespace set statistics 0,
    alter column run_id set statistics 0;
alter table agui.checkpoint_write
    alter column task_id set statistics 0,
    alter column task_path set statistics 0,
    alter column type set statistics 0,
    alter column bytes set statistics 0;
alter table agui.channel
    alter column name set statistics 0,
    alter column namespace set statistics 0;
alter table agui.channel_value
    alter column version set statistics 0,
    alter column type set statistics 0,
    alter column bytes set statistics 0;
alter table agui.erasure
    alter column reason set statistics 0,
    alter column erased_by set statistics 0,
    alter column allowed_by set statistics 0;
alter table agui_internal.chained_scope alter column scope set statistics 0;
alter table agui_internal.claim
    alter column run_id set statistics 0,
    alter column parent_run_id set statistics 0,
    alter column claimant set statistics 0,
    alter column input_hash set statistics 0,
    alter column stop_reason set statistics 0;
alter table agui_internal.job_note alter column error set statistics 0;
-- An expression of an index has statistics of its own.
alter index agui.run_by_time alter column 1 set statistics 0;

-- Record of the install, written by pgagui. Do not edit.
create or replace function agui_internal.installed(out version int, out fingerprint text, out objects text[], out serves int)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as 'select 1, ''94bfd1358abeed19e97a7df623e876dee41cffc8cdfc2cfd0260c2a0364a43ef'', ''{
index agui.channel_part_by_print, index agui.input_part_by_print, index agui.run_by_status, index agui.run_by_time,
index agui.run_changed, index agui.run_children, index agui.run_in_progress, index agui.run_input_to_split,
index agui.run_to_compact, index agui.run_to_repack, index agui.run_without_end, index agui.thread_activity_archived,
index agui.thread_activity_by_time, index agui.thread_by_id, routine agui_internal.installed, table agui.batch,
table agui.channel, table agui.channel_part, table agui.channel_value, table agui.checkpoint,
table agui.checkpoint_write, table agui.erasure, table agui.input_part, table agui.message_version, table agui.run,
table agui.run_input, table agui.session_key, table agui.session_state, table agui.snapshot, table agui.thread,
table agui.thread_activity, table agui_internal.chained_scope, table agui_internal.claim,
table agui_internal.erasure_salt, table agui_internal.installed_object, table agui_internal.job_note,
table agui_internal.setting, table agui_internal.tenant, table agui_internal.uptime
}''::text[], 1';

comment on function agui_internal.installed() is
    'The version of the schemas agui and agui_internal, a hash of the text of the migrations that made them, what belongs to them, and the '
    'oldest version whose programs work with it. The migrations write it, whichever tool runs them.';

revoke execute on function agui_internal.installed() from public;
-- End of the record.

do $$
begin
    perform pg_catalog.set_config('search_path', pg_catalog.current_setting('agui.search_path'), false);
end
$$;
