create type agui.keep_alive_row as (
    call_no           int,
    status            text,
    stop_requested_at timestamptz,
    stop_reason       text,
    cut_off_reason    text
);

comment on type agui.keep_alive_row is
    'A message from agui.keep_alive to the writer of a run. call_no is the position of the run in '
    'the arguments, from 1. status is the status of the run, or claimed before its beginning. '
    'stop_requested_at and stop_reason are set if it should stop. cut_off_reason is set if it was '
    'ended on behalf of its writer.';
