create type agui.thread_page_row as (
    threads     agui.thread_row[],
    next_cursor text,
    searched_to timestamptz
);

comment on type agui.thread_page_row is
    'A page of threads, most recent activity first, and the cursor of the next page. The list ends '
    'only if next_cursor is null: a short or empty page may have one. searched_to: if the page ends '
    'because 10,000 threads were examined, the active_at of the last one, so that a user can see '
    'how far back a search went; else null.';
