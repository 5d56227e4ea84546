create type agui.thread_page_row as (
    threads     agui.thread_row[],
    next_cursor text
);

comment on type agui.thread_page_row is
    'A page of threads, most recent activity first, and the cursor of the next page. The list ends '
    'only if next_cursor is null: a short or empty page may have one.';
