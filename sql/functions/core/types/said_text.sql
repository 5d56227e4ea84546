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
