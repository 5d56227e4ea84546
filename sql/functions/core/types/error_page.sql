create type agui.error_page as (
    errors   agui.error_row[],
    next_seq bigint
);

comment on type agui.error_page is
    'A page of the errors of a thread, in the order of seq. next_seq: at_seq of the page before it; '
    'null: there are no others. A page that has one may have few errors, or none.';
