create type agui.thread_page_row as (
    threads     agui.thread_row[],
    next_cursor text
);

comment on type agui.thread_page_row is
    'A page of threads, newest activity first, and the cursor that the next page is asked for '
    'with. next_cursor is null where the list ends; a page that is short, or empty, is the last '
    'one only then.';
