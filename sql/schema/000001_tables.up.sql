-- No name is looked up in schemas of the session's search_path, where others may create. The end of the file puts it back.
do $$
begin
    perform pg_catalog.set_config('agui.search_path', pg_catalog.current_setting('search_path'), false);
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false);
end
$$;

-- pgagui keeps AG-UI event streams in PostgreSQL.
--
--   thread    a conversation. Its key is derived from (scope, thread_id), so no look-up is needed to find its rows.
--   run       a node of the thread's tree: what an agent did between RUN_STARTED and RUN_FINISHED or RUN_ERROR.
--   batch     the log: the events of one append call, verbatim. seq numbers a thread's events 1, 2, 3, … in commit order.
--   snapshot  what the log meant after a run (messages, state, interrupts), so that a read need not replay all of it.
--   message   the messages that snapshots point to, each version once, however many snapshots and branches share it.
--   thread_activity  what a list of threads shows of each: when it was active, title, agent, metadata.
--   erasure   what was erased for good: a thread without its name, when, by whom.
--
-- thread, run and batch are the truth: events are only ever added, unless a whole thread is erased. message and snapshot can be
-- made again from them. Beside the events, what the parts of an agent keep of a conversation:
--
--   session_state  a JSON document per thread, run and key, verbatim, in its last versions; read along the lineage of a run.
--   session_key    the keys of a thread: it numbers their versions.
--   checkpoint     states of workflow engines, each after its parent.
--
-- The schema agui holds what users call and read, agui_internal what that is made of. The functions come with the next migration.

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

-- "create schema if not exists" needs the right to create schemas even where there is nothing to create.
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
    'pgagui: AG-UI event streams as an append-only log, a git-like tree of runs, and snapshots folded from them. '
    'What users call and read is here.';
comment on schema agui_internal is
    'pgagui: what the functions of the schema agui are made of. It may change with any release: do not call it.';

create table agui.thread (
    thread_key uuid primary key,
    scope      text not null,
    thread_id  text not null,
    created_at timestamptz not null default clock_timestamp()
);

comment on table agui.thread is 'A conversation (AG-UI threadId) of a scope.';
comment on column agui.thread.thread_key is
    'agui.thread_key(scope, thread_id): 64 bits that hash the scope, then 64 bits that hash scope and thread id. The threads of a scope are one range of keys.';
comment on column agui.thread.scope is
    'The tenant or user that the thread belongs to; '''' when scopes are not used. A name, not a protection: that takes row-level security.';
comment on column agui.thread.thread_id is 'threadId of the protocol, unique in its scope.';
comment on column agui.thread.created_at is 'When the first event was appended, or session state or a checkpoint saved.';

create index thread_by_id on agui.thread (thread_id);

comment on index agui.thread_by_id is 'For queries on the view agui.event and for people, who know the id and not the key.';

create table agui.run (
    thread_key uuid not null references agui.thread,
    run_no     int not null,
    parent_no  int,
    parent_given boolean not null default false,
    run_id     text not null,
    status     text not null,
    first_seq  bigint not null,
    last_seq   bigint,
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
    primary key (thread_key, run_no),
    -- In this order, or a query for one run by its number might take this index, and read all runs of the thread: under row-level
    -- security the planner expects too few of them.
    unique (run_id, thread_key),
    foreign key (thread_key, parent_no) references agui.run,
    constraint run_parent_is_older check (parent_no < run_no),
    constraint run_status_is_known check (status in ('running', 'finished', 'failed')),
    constraint run_has_bounds_once_ended check (status = 'running' or (last_seq >= first_seq and ended_at is not null)),
    constraint run_reasons_are_not_empty check (cut_off_reason <> '' and stop_reason <> '')
);

create index run_in_progress on agui.run (thread_key, run_no) where status = 'running';
create index run_to_compact on agui.run (ended_at) where log_bytes is null and status <> 'running';
create index run_to_repack on agui.run (ended_at) where repacked_at is null and status <> 'running';
create index run_children on agui.run (thread_key, parent_no) where parent_no is not null;

comment on table agui.run is 'A run of an agent: a node of its thread''s tree.';
comment on column agui.run.run_no is 'The runs of a thread numbered 1, 2, 3, … as they began. A parent has a smaller number than its children.';
comment on column agui.run.parent_no is 'The run that this one goes on from; null: a root.';
comment on column agui.run.parent_given is
    'Whether its writer gave the parent, or that there is none, beside the events. Otherwise it is the one that RUN_STARTED names, else the run begun before it.';
comment on column agui.run.run_id is 'runId of the protocol, unique in its thread.';
comment on column agui.run.status is
    'running, finished (RUN_FINISHED, interrupts included) or failed (RUN_ERROR): what its last end says, also where events follow it.';
comment on column agui.run.first_seq is 'seq of its first event.';
comment on column agui.run.last_seq is 'seq of its last event; null while it is running. Runs that went on side by side interleave in the log.';
comment on column agui.run.started_at is 'recorded_at of its first event.';
comment on column agui.run.ended_at is 'recorded_at of its last event, also where that follows the end; null while it is running.';
comment on column agui.run.seen_at is 'When its writer last said that the run is alive (agui.keep_alive), although it may have had no events to append.';
comment on column agui.run.has_heartbeat is
    'Whether its writer calls agui.keep_alive all the time: the setting heartbeat_lease is its lease as long as that goes on, else the setting lease.';
comment on column agui.run.open_from is
    'No run of the thread with a smaller number was in progress when this one began, or has been since: whoever looks for one begins here.';
comment on column agui.run.stop_requested_at is 'When somebody first asked its writer to stop (agui.request_stop); null: nobody has.';
comment on column agui.run.stop_reason is 'The reason that was given for it; null: none.';
comment on column agui.run.cut_off_reason is 'Why it was ended in the place of its writer, who had gone; null: it was not.';
comment on column agui.run.n is 'Number of its events, counted when compaction processed the run; null: not processed yet.';
comment on column agui.run.log_bytes is
    'Bytes that its batches and its input take as stored (compressed), measured when compaction processed the run and again when it was repacked; '
    'null: not processed yet.';
comment on column agui.run.repacked_at is 'When its batches were joined into larger ones; null: not yet.';
comment on index agui.run_in_progress is 'The runs in progress of a thread: looked at whenever a run begins.';
comment on index agui.run_to_compact is 'The queue of compaction: ended runs that it has not processed yet, parents before children.';
comment on index agui.run_children is 'The runs that go on from a run. Without it the foreign key to the parent makes agui.erase quadratic.';
comment on index agui.run_to_repack is 'The queue of agui.repack: ended runs whose batches are as they were appended.';

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
    -- No check constraints: they would take 6 % of the append of a token. agui.verify looks after what they would say.
    primary key (thread_key, first_seq)
);

-- Compressed from 2 KB on, and in its row as long as that fits into a page, so that a thread is read in one range scan.
alter table agui.batch alter column events set storage main;
alter table agui.batch alter column earlier_us set storage main;
alter table agui.batch alter column links set storage main;

comment on table agui.batch is
    'The log: a row holds the events of one append call, or of several that agui.repack joined. Triggers refuse every other change.';
comment on column agui.batch.first_seq is 'seq of the first event in the batch; the next batch of the thread begins at first_seq + n.';
comment on column agui.batch.recorded_at is
    'When its last event was appended; never before the batch that precedes it in the thread.';
comment on column agui.batch.n is 'Number of events in the batch.';
comment on column agui.batch.run_no is
    'The run that the events belong to. No foreign key: it would slow every append; agui.verify looks after it.';
comment on column agui.batch.events is
    'JSON array of the events as they were appended. json, not jsonb: every byte of an event comes back, also what jsonb cannot hold.';
comment on column agui.batch.text_bytes is
    'Octets of events where they may be compressed, so that a page of the log can be bounded without opening them; null: about as many as are stored.';
comment on column agui.batch.earlier_us is
    'For each event how many microseconds before recorded_at it was appended, in a batch that agui.repack joined or agui.import_events '
    'made; null: all at once.';
comment on column agui.batch.hash is
    'Where the thread is chained (agui.enable_chain): the hash of its last link (agui_internal.chain_link); null: it is not, or was not yet.';
comment on column agui.batch.links is
    'In a chained batch that agui.repack joined: how many events each of its links has; null: the batch is one link.';

create table agui.run_input (
    thread_key uuid not null,
    run_no     int not null,
    input      json not null,
    primary key (thread_key, run_no),
    foreign key (thread_key, run_no) references agui.run
);

-- As in agui.batch.
alter table agui.run_input alter column input set storage main;

comment on table agui.run_input is
    'The input of a run (RunAgentInput) that its writer gave beside the events, because its RUN_STARTED carries none. Never changed.';
comment on column agui.run_input.input is
    'The input, byte for byte. It counts as the input of RUN_STARTED unless the first RUN_STARTED carries an object of its own.';

create table agui.thread_activity (
    thread_key    uuid primary key references agui.thread,
    scope_key     bigint not null,
    archived      boolean not null default false,
    active_at     timestamptz not null,
    title         text,
    derived_title text,
    agent         text,
    metadata      jsonb not null default '{}',
    written_in    xid8,
    writes        smallint not null default 0,
    constraint thread_activity_metadata_is_an_object check (jsonb_typeof(metadata) = 'object')
);

create index thread_activity_by_time on agui.thread_activity (scope_key, archived, active_at desc, thread_key desc);

comment on table agui.thread_activity is
    'What lists of threads need of each: when it was active, and what agui.set_thread sets. A run that begins or ends updates it, '
    'the events between do not.';
comment on column agui.thread_activity.scope_key is 'The first 64 bits of thread_key, as a number: the hash of the scope.';
comment on column agui.thread_activity.archived is 'Whether lists leave the thread out unless they are asked for it.';
comment on column agui.thread_activity.active_at is
    'When a run of the thread last began or ended, as agui.run has it; without runs, when the thread was made.';
comment on column agui.thread_activity.title is 'The title that was set; null: none.';
comment on column agui.thread_activity.derived_title is
    'The beginning of the first user message, shown where no title is set; null: not known yet.';
comment on column agui.thread_activity.agent is 'The agent that the thread belongs to; null: not set.';
comment on column agui.thread_activity.metadata is 'What an application keeps with the thread, a JSON object.';
comment on column agui.thread_activity.written_in is 'For agui.append: the transaction that set active_at last; null: it has done so for good.';
comment on column agui.thread_activity.writes is 'How often that transaction has set it.';
comment on index agui.thread_activity_by_time is 'A page of the threads of a scope, newest activity first.';

create table agui.message (
    thread_key uuid not null references agui.thread,
    message_no int not null,
    message_id text,
    role       text,
    body       json not null,
    primary key (thread_key, message_no)
);

comment on table agui.message is
    'Versions of messages that snapshots point to. A version is written once and shared by all snapshots and branches that have it.';
comment on column agui.message.message_no is 'Number of the version in its thread.';
comment on column agui.message.message_id is 'id of the message, decoded; null when it has none.';
comment on column agui.message.role is 'role of the message, decoded; null when it has none.';
comment on column agui.message.body is 'The message as AG-UI clients know it.';

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
    'What the lineage of a run meant once its events up to through_seq were applied. Can be deleted and made again at any time.';
comment on column agui.snapshot.through_seq is 'seq of the last event of the run that is part of the snapshot.';
comment on column agui.snapshot.message_nos is 'Its messages in order, as ranges of message.message_no.';
comment on column agui.snapshot.state is 'The state that the agent and its UI share.';
comment on column agui.snapshot.interrupts is 'The interrupts that wait for an answer, as a JSON array.';
comment on column agui.snapshot.lanes is
    'Chunk streams (TEXT_MESSAGE_CHUNK, …) that are open at through_seq, so that the fold can go on between two chunks; null: none.';

create table agui.session_key (
    thread_key   uuid not null references agui.thread,
    key          text not null,
    last_version bigint not null,
    saved_at     timestamptz not null,
    primary key (thread_key, key)
);

comment on table agui.session_key is
    'A key that session state of a thread is kept under. Whoever saves its next version holds this row, so versions are numbered without gaps, in commit order.';
comment on column agui.session_key.key is 'The name that a part of the agent gave to what it keeps, for instance memory.';
comment on column agui.session_key.last_version is 'Number of the version saved last, at whatever run. No number is given twice, also when the version itself has gone.';
comment on column agui.session_key.saved_at is 'When that was.';

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

-- As in agui.batch: a load of ten documents of 6 KB looks at 71 pages, not at 101.
alter table agui.session_state alter column document set storage main;

comment on table agui.session_state is
    'What a part of the agent keeps of a conversation beside the events: a document per thread, run and key, in its last versions. A run has what was saved '
    'nearest to it on its lineage.';
comment on column agui.session_state.run_no is
    'The run that it was saved at; 0: none, it is the thread''s own. No foreign key, for there is no run 0; agui.verify looks after it.';
comment on column agui.session_state.key is 'session_key.key.';
comment on column agui.session_state.version is 'Numbers the documents of a key in its thread 1, 2, 3, …, whatever run they were saved at.';
comment on column agui.session_state.document is
    'The document, byte for byte; null: from this run on there is none, whatever runs before it have.';
comment on column agui.session_state.saved_at is 'When it was saved.';

create table agui.checkpoint (
    thread_key    uuid not null references agui.thread,
    checkpoint_no bigint not null,
    namespace     text not null,
    checkpoint_id text not null,
    parent_no     bigint,
    document      json not null,
    saved_at      timestamptz not null default clock_timestamp(),
    primary key (thread_key, checkpoint_no),
    unique (thread_key, namespace, checkpoint_id),
    foreign key (thread_key, parent_no) references agui.checkpoint,
    constraint checkpoint_parent_is_older check (parent_no < checkpoint_no)
);

create index checkpoint_in_namespace on agui.checkpoint (thread_key, namespace, checkpoint_no);
create index checkpoint_children on agui.checkpoint (thread_key, parent_no) where parent_no is not null;

alter table agui.checkpoint alter column document set storage main;

comment on table agui.checkpoint is 'The state of a workflow engine at some point of a conversation; from its parents it went on to there.';
comment on column agui.checkpoint.checkpoint_no is 'The checkpoints of a thread numbered 1, 2, 3, … in commit order. A parent has a smaller number than its children.';
comment on column agui.checkpoint.namespace is 'Keeps the checkpoints of several workflows of a thread apart; '''' unless given.';
comment on column agui.checkpoint.checkpoint_id is 'The engine''s name for it, unique in its namespace.';
comment on column agui.checkpoint.parent_no is 'The checkpoint that it goes on from, of the same namespace; null: a root.';
comment on column agui.checkpoint.document is 'The checkpoint, byte for byte.';
comment on column agui.checkpoint.saved_at is 'When it was saved.';
comment on index agui.checkpoint_children is 'The checkpoints that go on from one. Without it the foreign key to the parent makes agui.erase quadratic.';
comment on index agui.checkpoint_in_namespace is 'The last checkpoint of a namespace, and all of them in order.';

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
    'That threads were erased: when, by whom and why, without their names. Until allowed_at is set nothing can be appended to them.';
comment on column agui.erasure.erased_key is
    'A salted hash of the thread''s key (agui_internal.erasure_key), by which the thread is known when somebody names it. Without the salt no name can be '
    'tried against it. The first half is that of the scope, as in thread_key.';
comment on column agui.erasure.erased_at is 'When it was erased.';
comment on column agui.erasure.erased_by is 'The role that was logged in.';
comment on column agui.erasure.reason is 'What the caller gave as the reason.';
comment on column agui.erasure.runs is 'Number of runs that it had.';
comment on column agui.erasure.events is 'Number of events that it had.';
comment on column agui.erasure.allowed_at is 'When agui.lift_erasure let new events in; null: they are refused.';
comment on column agui.erasure.allowed_by is 'The role that was logged in then.';

create table agui_internal.erasure_salt (
    only_row boolean primary key default true,
    salt     bytea not null,
    constraint erasure_salt_has_one_row check (only_row)
);

comment on table agui_internal.erasure_salt is
    'What is hashed together with the keys of erased threads, in one row, for the owner alone. agui_internal.define_settings() makes it. Who has it and '
    'agui.erasure can try names, as who has a whole dump can; without it, erased threads are no longer known.';
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
comment on column agui_internal.chained_scope.since is 'From when on.';

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
comment on column agui_internal.setting.value is 'What holds now, in the unit.';
comment on column agui_internal.setting.unit is 'seconds, bytes or count.';
comment on column agui_internal.setting.default_value is 'What holds unless somebody changes it.';
comment on column agui_internal.setting.min_value is 'The least value that it takes.';
comment on column agui_internal.setting.max_value is 'The greatest value that it takes.';
comment on column agui_internal.setting.description is 'What it does.';

create table agui_internal.uptime (
    only_row   boolean primary key default true,
    up_since   timestamptz not null,
    checked_at timestamptz not null,
    timeline   text,
    constraint uptime_has_one_row check (only_row)
);

comment on table agui_internal.uptime is
    'Since when writers could reach the server, in one row: leases count from then on. agui.keep_alive and agui.reap write it, at most every 10 seconds.';
comment on column agui_internal.uptime.only_row is 'True: there is one row.';
comment on column agui_internal.uptime.up_since is
    'When the server was reached after an outage: a time without calls, or a promotion. -infinity: there was none yet.';
comment on column agui_internal.uptime.checked_at is 'When it was last reached, give or take 10 seconds.';
comment on column agui_internal.uptime.timeline is 'The timeline of the write-ahead log then, which a promotion changes; null: this server does not say.';

create table agui_internal.job_note (
    job        text not null,
    thread_key uuid not null,
    run_no     int not null,
    attempts   int not null,
    code       text,
    error      text,
    next_at    timestamptz,
    noted_at   timestamptz not null default clock_timestamp(),
    primary key (job, thread_key, run_no)
);

comment on table agui_internal.job_note is
    'What jobs are at, and what they failed at. A job commits a note before it begins a run, and deletes it in the transaction that does the '
    'work. So what stays behind a job that is gone names the run that it was at. The view agui.quarantine shows the notes of failures.';
comment on column agui_internal.job_note.job is 'compact, compact_running or repack: each job has notes of its own.';
comment on column agui_internal.job_note.run_no is 'The run; 0: runs of the thread, no one in particular.';
comment on column agui_internal.job_note.attempts is 'How often the job has begun it without an end, the one that may be in progress included.';
comment on column agui_internal.job_note.code is 'SQLSTATE of the last attempt; null: none.';
comment on column agui_internal.job_note.error is 'Why the last attempt failed; null: the job is at it, or was killed, out of memory or out of time.';
comment on column agui_internal.job_note.next_at is 'When the job tries it next; null: at once, after all others.';
comment on column agui_internal.job_note.noted_at is 'When the last attempt began or failed.';

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
    'Which threads a role may see and change while row-level security is on: agui.map_tenant, agui.map_pool and agui.map_operator write it, and the view '
    'agui.tenant shows it. A role that is not here sees none.';
comment on column agui_internal.tenant.role_name is
    'The role, as it is set (SET ROLE) or logged in. Roles that are members of it are not meant: each has its own row. By name, so that a dump can be restored '
    'before the roles are there.';
comment on column agui_internal.tenant.scope is 'The scope whose threads the role has; null: see is_pool and is_operator.';
comment on column agui_internal.tenant.is_pool is 'Whether the role has the scope that the setting agui.scope names.';
comment on column agui_internal.tenant.is_operator is 'Whether the role has all scopes.';
comment on column agui_internal.tenant.low is 'The least key of a thread that the role has; null for a pool.';
comment on column agui_internal.tenant.high is 'The greatest key of a thread that the role has; null for a pool.';

create table agui_internal.installed_object (
    object       text primary key,
    definition   text not null,
    server_major int not null
);

comment on table agui_internal.installed_object is
    'How the catalog defined the objects of this install when it was made, so that changes by hand are noticed. See agui_internal.changed_objects().';
comment on column agui_internal.installed_object.object is 'Kind and name, as DROP takes them: function agui.head(text, text).';
comment on column agui_internal.installed_object.definition is 'A hash of its definition.';
comment on column agui_internal.installed_object.server_major is
    'The major version of PostgreSQL that wrote the definition. After pg_upgrade there is nothing to compare with until "pgagui migrate up" records it anew.';

-- lz4 compresses several times faster than pglz; servers built without it keep their default.
do $$
begin
    if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) then
        alter table agui.batch alter column events set compression lz4;
        alter table agui.batch alter column earlier_us set compression lz4;
        alter table agui.message alter column body set compression lz4;
        alter table agui.snapshot alter column state set compression lz4;
        alter table agui.session_state alter column document set compression lz4;
        alter table agui.checkpoint alter column document set compression lz4;
        alter table agui.run_input alter column input set compression lz4;
    end if;
end
$$;

-- Record of the install, written by internal/sqlgen. Do not edit.
create or replace function agui_internal.installed(out version int, out fingerprint text, out objects text[])
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as 'select 1, ''12cbf47770cec186b0006adbc4fa1ed9ff4e4e96e3b0fde6a298ef79afb4f483'', ''{
index agui.checkpoint_children, index agui.checkpoint_in_namespace, index agui.run_children, index agui.run_in_progress,
index agui.run_to_compact, index agui.run_to_repack, index agui.thread_activity_by_time, index agui.thread_by_id,
routine agui_internal.installed, table agui.batch, table agui.checkpoint, table agui.erasure, table agui.message,
table agui.run, table agui.run_input, table agui.session_key, table agui.session_state, table agui.snapshot,
table agui.thread, table agui.thread_activity, table agui_internal.chained_scope, table agui_internal.erasure_salt,
table agui_internal.installed_object, table agui_internal.job_note, table agui_internal.setting,
table agui_internal.tenant, table agui_internal.uptime
}''::text[]';

comment on function agui_internal.installed() is
    'The version of the schemas agui and agui_internal, a hash of the text of the migrations that made them, and what belongs to them. '
    'The migrations write it, whichever tool runs them.';

revoke execute on function agui_internal.installed() from public;
-- End of the record.

do $$
begin
    perform pg_catalog.set_config('search_path', pg_catalog.current_setting('agui.search_path'), false);
end
$$;
