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
