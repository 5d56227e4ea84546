create type agui.found_text as (
    scope      text,
    thread_id  text,
    run_id     text,
    message_id text,
    role       text,
    seq        bigint,
    said_at    timestamptz,
    rank       real,
    snippet    text,
    cursor     text,
    searched_to timestamptz
);

comment on type agui.found_text is
    'A message that agui.search found. run_id, seq, said_at: the run that brought the text first, and the '
    'event with which it began, or the first event of the run if its input brought it. message_id: null if '
    'it has none. rank: how well it matches. snippet: the parts of the text that match. cursor: what '
    'agui.search takes to go on behind it. searched_to: so many match that only the newest were ranked, '
    'back to this time; null: all were.';
