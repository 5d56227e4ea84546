-- Search in the texts of messages, if an owner turns it on (agui.enable_search).

create table agui.message_text (
    thread_key uuid not null references agui.thread,
    print      bigint not null,
    run_no     int not null,
    seq        bigint not null,
    said_at    timestamptz not null,
    role       text not null,
    message_id text,
    text       text not null,
    words      tsvector not null,
    primary key (thread_key, print)
);

create index message_text_word on agui.message_text using gin (words);

comment on table agui.message_text is
    'The texts of messages, each once in its thread: those of users, assistants and tools, of all '
    'branches. Empty unless agui.enable_search was called; agui.project() keeps it. agui.search reads it.';
comment on column agui.message_text.print is 'Hash of role, message id and text, which identifies the row in its thread.';
comment on column agui.message_text.run_no is 'The run that brought the text first, by an event or in its input.';
comment on column agui.message_text.seq is 'seq of the event with which the message began; for an input, of the first event of the run.';
comment on column agui.message_text.said_at is 'When that event was recorded.';
comment on column agui.message_text.role is 'user, assistant or tool.';
comment on column agui.message_text.message_id is 'id of the message; null: it has none.';
comment on column agui.message_text.text is 'Its text, the first 100,000 characters; the parts of a content are separated by line ends.';
comment on column agui.message_text.words is
    'What is searched: the words in the language of agui_internal.search, and two words that no text has, '
    'for the scope and the role. So a tenant''s common word is as fast to find as a rare one.';
comment on index agui.message_text_word is 'Finds texts by their words within a scope.';

create table agui_internal.search (
    is_only    boolean primary key default true check (is_only),
    language   text not null,
    enabled_at timestamptz not null default clock_timestamp()
);

comment on table agui_internal.search is 'How texts are searched. One row, or none: search is off.';
comment on column agui_internal.search.is_only is 'True: there is one row at most.';
comment on column agui_internal.search.language is 'A text search configuration, for example english.';
comment on column agui_internal.search.enabled_at is 'Since when.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui.message_text
    alter column role set statistics 0,
    alter column message_id set statistics 0,
    alter column text set statistics 0,
    alter column words set statistics 0;
alter table agui_internal.search alter column language set statistics 0;
