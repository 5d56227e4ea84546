-- What agui.project() takes from the log, so that a question about all conversations reads no log. The views agui.run_fact,
-- agui.tool_fact, agui.interrupt_fact and agui.usage_fact show it. All of it can be deleted and made again.

create table agui.projected_run (
    thread_key     uuid not null,
    run_no         int not null,
    changed_in     xid8,
    events         bigint not null,
    bytes          bigint not null,
    first_token_at timestamptz,
    error_code     text,
    error_message  text,
    primary key (thread_key, run_no),
    foreign key (thread_key, run_no) references agui.run
);

comment on table agui.projected_run is 'What agui.project() found in the log of a run that has ended: a row for each.';
comment on column agui.projected_run.changed_in is 'run.changed_in of the run as it was read.';
comment on column agui.projected_run.events is 'Number of its events, also those after its end.';
comment on column agui.projected_run.bytes is 'Size of the text of its events in bytes.';
comment on column agui.projected_run.first_token_at is 'When the first piece of a text message was recorded; null: there is none.';
comment on column agui.projected_run.error_code is 'code of RUN_ERROR; null: none.';
comment on column agui.projected_run.error_message is 'message of RUN_ERROR, its first 1000 characters; null: none.';

create table agui.projected_call (
    thread_key     uuid not null,
    run_no         int not null,
    call_id        text not null,
    place          int not null,
    tool           text,
    started_at     timestamptz,
    is_complete    boolean,
    argument_bytes bigint,
    result_at      timestamptz,
    result_bytes   bigint,
    error          text,
    is_answer      boolean not null,
    primary key (thread_key, run_no, place)
);

create index projected_call_result on agui.projected_call (thread_key, call_id) where tool is null;

comment on table agui.projected_call is
    'The tool calls of a run, and the results that it brought: a row for each call id. A call whose '
    'result comes with a later run has a row in both.';
comment on column agui.projected_call.call_id is 'toolCallId.';
comment on column agui.projected_call.place is 'The call ids of a run numbered 1, 2, 3, … in the order in which they came.';
comment on column agui.projected_call.tool is 'Name of the function; null: the run brought the result only.';
comment on column agui.projected_call.started_at is 'When the call began.';
comment on column agui.projected_call.is_complete is 'Whether its arguments ended.';
comment on column agui.projected_call.argument_bytes is 'Size of its arguments in bytes, as JSON writes them.';
comment on column agui.projected_call.result_at is 'When the result came: its last, or the beginning of the run whose input has it; null: no result came with this run.';
comment on column agui.projected_call.result_bytes is 'Size of the content of the result in bytes, as JSON writes it.';
comment on column agui.projected_call.error is 'What failed, its first 1000 characters (agui_internal.tool_error); null: nothing did.';
comment on column agui.projected_call.is_answer is 'Whether the input of the run brought the result, not an event.';
comment on index agui.projected_call_result is 'Finds a result that came with another run than its call.';

create table agui.projected_interrupt (
    thread_key   uuid not null,
    run_no       int not null,
    place        int not null,
    interrupt_id text,
    reason       text,
    message      text,
    tool_call_id text,
    asked_at     timestamptz not null,
    expires_at   timestamptz,
    primary key (thread_key, run_no, place)
);

comment on table agui.projected_interrupt is 'The interrupts with which a run ended: a row for each.';
comment on column agui.projected_interrupt.place is 'The interrupts of a run numbered 1, 2, 3, …, as its agent listed them.';
comment on column agui.projected_interrupt.interrupt_id is 'id of the interrupt; null: it has none.';
comment on column agui.projected_interrupt.reason is 'Why the agent asks, as a word; null: not said.';
comment on column agui.projected_interrupt.message is 'The question, its first 1000 characters; null: none.';
comment on column agui.projected_interrupt.tool_call_id is 'The tool call that waits; null: none.';
comment on column agui.projected_interrupt.asked_at is 'When RUN_FINISHED was recorded.';
comment on column agui.projected_interrupt.expires_at is 'Until when an answer counts; null: no limit.';

create table agui.projected_usage (
    thread_key uuid not null,
    run_no     int not null,
    place      int not null,
    provider   text,
    model      text,
    input_tokens             bigint,
    output_tokens            bigint,
    total_tokens             bigint,
    reasoning_tokens         bigint,
    cached_input_tokens      bigint,
    cache_write_input_tokens bigint,
    primary key (thread_key, run_no, place)
);

comment on table agui.projected_usage is 'The tokens that a run used, as its last end reports them: a row for each entry. See agui.model_usage.';
comment on column agui.projected_usage.place is 'The entries numbered 1, 2, 3, …';
comment on column agui.projected_usage.provider is 'Who runs the model; null: not named.';
comment on column agui.projected_usage.model is 'The model; null: not named.';
comment on column agui.projected_usage.input_tokens is 'Tokens of the prompt; null: not reported.';
comment on column agui.projected_usage.output_tokens is 'Tokens of the answer; null: not reported.';
comment on column agui.projected_usage.total_tokens is 'As reported, else input_tokens plus output_tokens.';
comment on column agui.projected_usage.reasoning_tokens is 'A part of output_tokens.';
comment on column agui.projected_usage.cached_input_tokens is 'A part of input_tokens.';
comment on column agui.projected_usage.cache_write_input_tokens is 'A part of input_tokens.';

create table agui_internal.projection (
    is_only    boolean primary key default true check (is_only),
    epoch      text not null,
    changed_in xid8 not null,
    thread_key uuid not null,
    run_no     int not null,
    scan_key   uuid,
    scan_no    int,
    projected_at timestamptz not null default clock_timestamp(),
    constraint projection_scans_from_a_run check ((scan_key is null) = (scan_no is null))
);

comment on table agui_internal.projection is 'How far agui.project() has come. One row, or none: it begins with all runs.';
comment on column agui_internal.projection.is_only is 'True: there is one row at most.';
comment on column agui_internal.projection.epoch is 'The history of transactions that changed_in counts in (agui_internal.epoch).';
comment on column agui_internal.projection.changed_in is
    'All runs that were changed before this transaction are projected, and of those that it changed the ones up to thread_key and run_no.';
comment on column agui_internal.projection.thread_key is 'See changed_in.';
comment on column agui_internal.projection.run_no is 'See changed_in.';
comment on column agui_internal.projection.scan_key is 'While all runs are projected: the last one; null: only changes are.';
comment on column agui_internal.projection.scan_no is 'See scan_key.';
comment on column agui_internal.projection.projected_at is 'When the job last worked.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui.projected_run
    alter column error_code set statistics 0,
    alter column error_message set statistics 0;
alter table agui.projected_call
    alter column call_id set statistics 0,
    alter column tool set statistics 0,
    alter column error set statistics 0;
alter table agui.projected_interrupt
    alter column interrupt_id set statistics 0,
    alter column reason set statistics 0,
    alter column message set statistics 0,
    alter column tool_call_id set statistics 0;
alter table agui_internal.projection alter column epoch set statistics 0;
alter table agui.projected_usage
    alter column provider set statistics 0,
    alter column model set statistics 0;
