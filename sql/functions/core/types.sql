create type agui_internal.call_event as (
    thread_key uuid,
    run_no     int,
    seq        bigint,
    at         timestamptz,
    type       text,
    call_id    text,
    name       text,
    delta      json,
    content    json,
    error      json,
    is_result  boolean,
    has_effect boolean,
    ending     json
);

comment on type agui_internal.call_event is
    'An event of a tool call as the fold reads it: call_id is the call that it names (null: a chunk that continues '
    'another, or an event that is not well-formed), name the function, is_result whether it brings the result. Behind '
    'RUN_ERROR it has no effect. Or, if ending is not null, the end of the run (guarded).';

-- The result of agui_internal.compact_sequence, an input for the next runs of the lineage: so each run
-- is folded once, and not repeatedly from the last snapshot.
create type agui_internal.carried_fold as (
    thread_key  uuid,
    run_no      int,
    ended_at    timestamptz,
    fold        agui_internal.fold,
    bytes       bigint,
    base_no     int,
    base_at     timestamptz,
    base_is_tip boolean,
    log_bytes   bigint,
    is_cut      boolean,
    is_done     boolean
);

comment on type agui_internal.carried_fold is
    'The fold of a lineage after the run run_no, which ended at ended_at, and its size in bytes '
    '(null: nothing can follow). base_no is the last run on it with a snapshot, made at base_at; it '
    'holds the stored messages that the fold refers to. '
    'base_is_tip: it may have its snapshot only because it was the tip. log_bytes: stored bytes of '
    'log on the lineage since that run. is_cut: the time was over before the end of the run, which '
    'the next call continues. is_done: another transaction has compacted the runs since they were '
    'chosen. In both cases all other columns are null.';

create type agui_internal.change_place as (
    epoch      text,
    is_in_first_reading boolean,
    changed_in xid8,
    thread_key uuid,
    run_no     int
);

comment on type agui_internal.change_place is
    'A position of agui.changes. epoch: its history of transactions (agui_internal.epoch). '
    'is_in_first_reading: the run is the last that was read of all runs, behind which those come that '
    'changed from changed_in on. Else all runs that were changed before changed_in were read, and of those '
    'that it changed the ones up to the run. thread_key and run_no are those of an erased thread as in '
    'agui_internal.changed_place.';

create type agui_internal.changed_place as (
    changed_in xid8,
    thread_key uuid,
    run_no     int
);

comment on type agui_internal.changed_place is
    'A place in the order of changes: the transaction that changed a run last, and the run; or the one '
    'that erased a thread, thread_uid of the thread, and 0.';

create type agui_internal.channel_content as (
    ordinality int,
    channel_no int,
    type       text,
    part_nos   int4range[],
    body       json,
    bytes      bytea
);

comment on type agui_internal.channel_content is
    'A value of a channel as tables hold it: in exactly one of the forms part_nos, body and bytes. '
    'ordinality is its place in the call.';

create type agui_internal.claimed_request as (
    event_id text,
    kind     text,
    body     json,
    attempts int
);

comment on type agui_internal.claimed_request is
    'A request of a webhook that a worker has to send now. attempts includes this one.';

-- What agui.compact does at once: one run, or several short ones of a lineage.
create type agui_internal.compaction_step as (
    thread_key uuid,
    run_nos    int[],
    place      timestamptz,
    step_no    bigint
);

comment on type agui_internal.compaction_step is
    'Runs to compact, of which notes are made: each is the parent of the next; {0} stands for all '
    'runs of the thread. place: where it was in the queue. step_no: its number in '
    'agui_internal.compaction_progress, if its transaction has several steps.';

create type agui_internal.due_thread as (
    thread_key uuid,
    scope      text,
    thread_id  text,
    action     text,
    older_than interval,
    is_all     boolean,
    last_news_at timestamptz,
    events     bigint,
    log_bytes  bigint,
    kept_because text
);

comment on type agui_internal.due_thread is
    'A thread for which an action of agui.retention is due, with the rule (is_all: the one for all '
    'scopes), the time when something was last appended or saved in it, the number of its events, and '
    'their stored size as far as compaction has measured it. kept_because says why the action is not '
    'done: held, or in progress; null: it is done.';

-- json_populate_recordset converts each event to such a row in one pass over the text. A column
-- that no event has costs next to nothing. Add new fields of events here.
create type agui_internal.event_fields as (
    type                text,
    "messageId"         json,
    "toolCallId"        json,
    delta               json,
    "subagentRunId"     json,
    metadata            json,
    role                json,
    name                json,
    "toolCallName"      json,
    "parentMessageId"   json,
    content             json,
    snapshot            json,
    patch               json,
    "activityType"      json,
    replace             json,
    input               json,
    outcome             json,
    messages            json,
    "entityId"          json,
    "encryptedValue"    json,
    subtype             json
);

comment on type agui_internal.event_fields is
    'The fields of an event (guarded JSON, agui_internal.json_guard) that SQL reads. Null counts '
    'as absent. Strings have one normalized spelling, whatever that of the event: equal strings '
    'are equal texts.';

create type agui_internal.event_inspection as (
    n             int,
    begins_with   text,
    parent_run_id text,
    restarts_at   int,
    reopens_at    int,
    status        text,
    ends_at       int,
    cut_off_reason text,
    late_at       int,
    other_thread  text,
    begins_unnamed boolean,
    asks          boolean,
    is_finish     boolean
);

comment on type agui_internal.event_inspection is
    'What the events of one call mean for the life cycle of their run. n: their number. '
    'begins_with: the type of the first, if it is RUN_STARTED, RUN_FINISHED or RUN_ERROR. '
    'parent_run_id: the parentRunId of that RUN_STARTED. restarts_at: the position of the first '
    'RUN_STARTED after it, reopens_at that of the last one. status: the status of the run after the last event that ends it (null: '
    'there is none), ends_at the position of that event, and cut_off_reason what it says if it is '
    'the end that agui_internal.close_run writes. late_at: the position of the first event after an '
    'end (RUN_ERROR may follow RUN_FINISHED). other_thread: the threadId of a RUN_STARTED that '
    'names another thread. begins_unnamed: the event of begins_with has '
    'neither a runId nor a threadId. asks: whether the run has asked since its last beginning or end (null: as '
    'before the call). is_finish: status is that of a plain end, so that it is interrupted if the run had asked before the '
    'call. Ids are guarded, see agui_internal.json_guard.';

create type agui_internal.event_reference as (
    seq        bigint,
    item       int,
    run_id     text,
    type       text,
    created_at timestamptz,
    message_id text,
    call_id    text,
    is_result  boolean,
    error      text
);

comment on type agui_internal.event_reference is
    'A reference to a message or tool call in the log: seq, run, type and time (its timestamp, '
    'else when it was appended) of the event. item is the position in the list of messages of the '
    'event, 0 if it has none. message_id is the message that the event creates or adds to; call_id '
    'is the tool call that it creates, adds to or (is_result) brings the result of; error is '
    '{message, code} of a RUN_ERROR, guarded (agui_internal.json_guard).';

create type agui_internal.event_span as (
    event_count  bigint,
    created_at   timestamptz,
    completed_at timestamptz
);

comment on type agui_internal.event_span is
    'What an event that stands for several states about them: their number, and the times of the '
    'first and the last one; null if it does not.';

-- The result of a fold so far: the value that the fold functions pass to each other and to the
-- readers. The arrays are parallel, with one entry for each message in the order of the
-- conversation.
create type agui_internal.fold as (
    through_seq   bigint,
    message_nos   int[],
    message_ids   text[],
    roles         text[],
    bodies        text[],
    state         text,
    interrupts    text,
    lanes         text,
    state_patches text[],
    size          bigint,
    spent         bigint
);

comment on type agui_internal.fold is
    'The result of a lineage at a seq: messages, state, interrupts and open chunk lanes. Texts are '
    'JSON. message_nos has the number of the stored version of a message, null for one that is new '
    'or changed. Entries with the same number are one message at several places; the number is '
    'negative if that message is new or changed. state_patches (guarded, agui_internal.json_guard) '
    'are not applied to the state yet: agui_internal.fold_patched. size: agui_internal.fold_size '
    'at the last check, plus what events have brought since. spent: the fuel that the last run has '
    'used (docs/settings.md).';

create type agui_internal.fold_attachment as (
    n          int,
    message_id text,
    type       text,
    mime_type  text,
    filename   text,
    value      text
);

comment on type agui_internal.fold_attachment is
    'A part of a message of an agui_internal.fold that holds data: as agui.attachment_row, with its '
    'base64 text.';

create type agui_internal.fold_call as (
    message_position bigint,
    message_id       text,
    "position"       bigint,
    call_id          text,
    name             text,
    arguments        text
);

comment on type agui_internal.fold_call is
    'A tool call of an agui_internal.fold: position and id of its message, its position in the '
    'message, and id, name and arguments as JSON values, guarded (agui_internal.json_guard).';

create type agui_internal.fold_change as (
    node int,
    kind text,
    text text,
    name text,
    previous int
);

comment on type agui_internal.fold_change is
    'A change of a node of agui_internal.fold_segments: ''open'' the first one, ''calls'' the first one '
    'of a call of the message, ''grow'' a piece of its string, ''merge'' metadata, ''rename'' a call, '
    '''encrypt'' a value, ''patch'' a patch of an activity (guarded JSON), with the activityType (name) '
    'that it sets and the position of the previous patch of the same node (previous), ''patched'' the '
    'activityType (name) of one that is applied. ''new content'' ends what earlier changes did to its '
    'content, and has the owner and the activityType (name); ''new message'' ends all earlier ones.';

create type agui_internal.fold_limits as (
    document_bytes      bigint,
    document_depth      int,
    patch_operations    int,
    patch_copied_bytes  bigint,
    patch_shifted_items bigint,
    fold_bytes          bigint,
    fold_messages       int,
    fold_lanes          int,
    fold_fuel           bigint
);

comment on type agui_internal.fold_limits is
    'The limits of a fold and of the JSON patches in it: the settings of these names '
    '(agui.setting).';

create type agui_internal.fold_message as (
    "position" bigint,
    message_id text,
    role       text,
    body       json
);

comment on type agui_internal.fold_message is
    'A message of an agui_internal.fold: its position from 1, id, role, and the message, guarded '
    '(agui_internal.json_guard).';

-- The small fields of a message or tool call while agui_internal.fold_segments has the conversation
-- taken apart. sql/functions/fold/nodes.sql draws the nodes. They are counted from 1; a link is the
-- number of another node.
create type agui_internal.fold_node as (
    -- what it is
    key           text,     -- the id of a message, or 'call ' and the id of a tool call; null if
                            -- there is none, and for a loaded message
    role          text,     -- of a message
    parent        int,      -- of a call: its message; 0 if that was replaced
    number        int,      -- of a loaded, unchanged message: its stored version
    same_as       int,      -- of a second place of a message: the first place
    is_shared     boolean,  -- other nodes are the same message

    -- its text
    is_head       boolean,  -- it was made here, with marks in place of its parts
    is_open       boolean,  -- it changes
    activity_type text,     -- of an activity, once a patch needs it
    name          text,     -- of a call whose name was read; '' if it has no function
    has_text      boolean,  -- of an inspected message: its content is a string
    grows         boolean,  -- its string has grown, so it has more pieces
    last_patch    int,      -- the last pending one, as its place among the changes
    patches_cost  boolean,  -- a pending one may use fuel

    -- the conversation
    following     int,      -- of a message: the next one
    rank          bigint,   -- its place as a number, once a message was inserted in between
    last_call     int,      -- of a message: its last call
    call_before   int,      -- of a call: the previous one of its message
    last_result   int,      -- of a message: the last of the results after it, as far as they were
    result_era    int,      -- searched since messages replaced others

    -- calls that have the same id
    next_same     int,      -- the next one
    last_same     int,      -- of the first: the last one
    assistant     int       -- of the first: the first one in an assistant message, or itself
);

comment on type agui_internal.fold_node is
    'The small fields of a message or tool call of agui_internal.fold_segments.';

-- A step from agui_internal.fold_steps for agui_internal.fold_segments. Each action uses some of the
-- columns:
--
--     start message      id, role, name, owner, metadata: a message that may exist already
--     start call         id, name, parent_id (of the message that gets it), owner, metadata
--     grow               id, is_call, content (one or more pieces, joined), metadata: the content of a
--                        message, the arguments of a call
--     merge              id, is_call, metadata
--     add result         id (of the call), parent_id (of the new message), role, content, owner, metadata
--     encrypt            id, is_call, content
--     add message        id, content: a message of the input of a run
--     show activity      id, activity_type, content, replaces, owner, metadata
--     patch activity     id, activity_type, content (the patch), metadata
--     list messages      messages, metadata: of a MESSAGES_SNAPSHOT
--     set state          content
--     patch state        content (the patch)
--     set interrupts     content (not guarded)
--     look               brought: the fold may have become too large
--     end run            brought: the same; the last step of a run
--     end                content (the chunk lanes, not guarded), brought: the last step
--     refuse lanes       too many chunk lanes are open; only the end follows
create type agui_internal.fold_step as (
    seq           bigint,
    action        text,
    id            text,
    is_call       boolean,
    owner         text,
    metadata      text,
    content       text,
    role          text,
    name          text,
    parent_id     text,
    activity_type text,
    replaces      boolean,
    messages      json,
    costs         boolean,
    copies        boolean,
    brought       bigint
);

comment on type agui_internal.fold_step is
    'What one event, or several with the pieces of one string, do to a fold. seq is that of the '
    'last of them. Texts are guarded JSON (agui_internal.json_guard). An id is a JSON string in '
    'normalized spelling, with its quotes; that of a tool call if is_call. costs: whether the '
    'patch may use fuel; copies: whether it copies. brought: the bytes that all events have '
    'brought, including this one.';

create type agui_internal.inactive_thread as (
    thread_key  uuid,
    scope       text,
    thread_id   text,
    last_news_at timestamptz,
    events      bigint
);

comment on type agui_internal.inactive_thread is
    'A thread that may be erased: its key, scope and id, the time when something was last appended '
    'or saved in it, and the number of its events.';

create type agui_internal.input_place as (
    run_no   int,
    seq      bigint,
    is_start boolean
);

comment on type agui_internal.input_place is
    'Where the input stored beside the events of a run takes effect: at its first RUN_STARTED '
    '(is_start), as if that carried it, or, without one, before its first event.';

create type agui_internal.insertion as (
    position int,
    slot     int,
    event    text,
    owner    text,
    copy     int
);

comment on type agui_internal.insertion is
    'An event that a stream lacks: its place (the position of an event; slots 0 closings, 1 an '
    'end, 2 a beginning and 3 starts before it, 5 starts after it), its text without the last '
    'brace (guarded), the subagent that it names in addition, or the position of the event that it '
    'copies.';

-- Numbers of nodes in agui_internal.json_patch_apply. A domain, because PostgreSQL has no arrays of
-- arrays of different lengths.
create domain agui_internal.json_nodes as int[];

comment on domain agui_internal.json_nodes is
    'The members of a JSON object or the items of an array, as node numbers, while '
    'agui_internal.json_patch_apply has it taken apart.';

create type agui_internal.json_note as (
    node         int,
    owner        int,
    opened       int,
    size         bigint,
    member_count int
);

comment on type agui_internal.json_note is
    'What a node, or the members or items that a node was opened to (owner), were before a patch of '
    'agui_internal.json_patch_apply, to undo it if it fails. Pieces and items are noted beside.';

create type agui_internal.life_event as (
    run_no        int,
    place         bigint,
    seq           bigint,
    type          text,
    status        text,
    is_late       boolean,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    input         json
);

comment on type agui_internal.life_event is
    'RUN_STARTED, RUN_FINISHED or RUN_ERROR in the log. place counts the events of its run, from '
    '1. status is that of the run after it; is_late: it has no effect, because it comes after RUN_ERROR '
    'and before the next RUN_STARTED. thread_id, run_id, parent_run_id and input are those that the event states, all guarded '
    '(agui_internal.json_guard): a backslash is an escape.';

create type agui_internal.message_mention as (
    run_no     int,
    first_seq  bigint,
    last_seq   bigint,
    type       text,
    is_list    boolean,
    message_id text,
    call_id    text,
    parent_id  text,
    entity_id  text,
    lane       text,
    first_told text,
    last_told  text,
    first_at   timestamptz,
    last_at    timestamptz
);

comment on type agui_internal.message_mention is
    'Events of a run of one type that name the same message or tool call: the first and the last of '
    'them, with their timestamps (as JSON) and the times when they were appended. is_list: the event '
    'lists messages, and this is one of them. lane: of chunks, the subagent, empty for the main '
    'agent; chunks that name nothing continue those before them in their lane.';

create type agui_internal.message_place as (
    item       int,
    run_id     text,
    first_seq  bigint,
    last_seq   bigint,
    started_at timestamptz,
    updated_at timestamptz,
    calls      json
);

comment on type agui_internal.message_place is
    'The place of a message in the log, as in agui.placed_message. item: its number in the list of '
    'messages that were looked for.';

create type agui_internal.open_part as (
    opens     text,
    closes    text,
    named_by  text,
    name      text,
    owner     text,
    opened_at bigint,
    event     json
);

comment on type agui_internal.open_part is
    'Something that a run has begun and not ended, such as a message: the types of the events that '
    'begin and end it, the field of the end that names it (null: none), its name, the subagent if '
    'the name is not sufficient, the seq of the event that began it, and that event. Name, owner '
    'and event are guarded (agui_internal.json_guard).';

create type agui_internal.run_end as (
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text
);

comment on type agui_internal.run_end is
    'Why a run ended as it did: code and message of its RUN_ERROR, the reason of the stop that '
    'cancelled it, and the reason why it was ended on behalf of its writer.';

create type agui_internal.run_news as (
    thread_key     uuid,
    run_no         int,
    seq            bigint,
    at             timestamptz,
    role           text,
    message_id     text,
    text           text,
    result         agui_internal.tool_result,
    call_id        text,
    tool           text,
    argument_bytes bigint
);

comment on type agui_internal.run_news is
    'A message that the fold has behind a run and not before it, new or changed, with its text and, if it is a '
    'result, the call and what the result is; or (role is null) a tool call in such a message, with the name of the '
    'function and the size of its arguments in bytes. seq and at: the first event of the run that brings the message.';

create type agui_internal.run_position as (
    run_no    int,
    parent_no int,
    open_from int
);

comment on type agui_internal.run_position is
    'The place of a new run in the tree of its thread; parent_no is null for a root. No run with a '
    'smaller number than open_from is in progress.';

create type agui_internal.said_text as (
    thread_key uuid,
    print      bigint,
    run_no     int,
    seq        bigint,
    said_at    timestamptz,
    role       text,
    message_id text,
    text       text
);

comment on type agui_internal.said_text is 'A row of agui.message_text without its words.';

create type agui_internal.session_input as (
    subject   text,
    thread_id text,
    run_id    text,
    state     json,
    versions  json
);

comment on type agui_internal.session_input is
    'A session passed to agui.save_sessions: its name in error texts, its thread, its run (null: '
    'none), and the objects with its documents and with the versions that its writer has read '
    '(null: not given).';

create type agui_internal.tool_failure as (
    seq     bigint,
    at      timestamptz,
    call_id text,
    tool    text,
    error   text
);

comment on type agui_internal.tool_failure is
    'A result of a tool call that is an error (agui_internal.tool_error): seq and time of its event, '
    'the call, the name of the function, and what failed.';

create type agui_internal.tool_result as (
    at    timestamptz,
    bytes bigint,
    error text
);

comment on type agui_internal.tool_result is
    'A result of a tool call: when it came, the size of its content in bytes, and what failed (null: nothing).';

create type agui_internal.turn as (
    id       text,
    role     text,
    is_turn  boolean,
    is_named boolean,
    key      jsonb
);

comment on type agui_internal.turn is
    'A message of a conversation as agui.branch_point compares it: two with the same key are the same. is_turn: all clients keep '
    'it; instructions, reasoning and activities are no turns. is_named: it may be found by its id (without one it is empty).';

create type agui_internal.usage_entry as (
    place         int,
    provider      text,
    model         text,
    input_tokens  bigint,
    output_tokens bigint,
    total_tokens  bigint,
    reasoning_tokens         bigint,
    cached_input_tokens      bigint,
    cache_write_input_tokens bigint
);

comment on type agui_internal.usage_entry is
    'The tokens that a run used of a model of a provider, at a place of its usage. See agui.model_usage.';

create type agui_internal.webhook_endpoint as (
    name       text,
    url        text,
    secret     text,
    scope      text,
    kinds      text[],
    enabled    boolean,
    created_at timestamptz,
    position   text,
    is_due     boolean,
    old_secret text,
    is_elsewhere boolean
);

comment on type agui_internal.webhook_endpoint is
    'What a worker needs to send the requests of a webhook. position: up to where agui.changes was read for it. '
    'is_due: a request is to be sent now. old_secret: signs too; null: there is none any more. '
    'is_elsewhere: another database sends them.';

create type agui_internal.webhook_state as (
    name       text,
    enabled    boolean,
    disabled_because text,
    to_send    bigint,
    retrying   bigint,
    failed     bigint,
    is_elsewhere boolean
);

comment on type agui_internal.webhook_state is 'How a webhook does, as in agui.webhook_info.';
