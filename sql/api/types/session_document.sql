create type agui.session_document as (
    key      text,
    run_id   text,
    version  bigint,
    saved_at timestamptz,
    document json
);

comment on type agui.session_document is
    'Session state under a key: the run that it was saved at (null: none, it is the thread''s own), its version, when it was saved, and its very bytes. '
    'A null document says that it was removed.';
