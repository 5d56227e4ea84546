create type agui.keep_alive_row as (
    call_no           int,
    status            text,
    stop_requested_at timestamptz,
    stop_reason       text,
    cut_off_reason    text
);

comment on type agui.keep_alive_row is
    'What the writer of a run should know, as agui.keep_alive answers: call_no says which of the runs asked for it is, from 1; its status; '
    'whether it shall stop, and why; and, when it was ended in its writer''s place, why.';
