create type agui.append_result as (
    call_no     int,
    last_seq    bigint,
    error_code  text,
    error       text,
    detail      text,
    hint        text,
    recorded_at timestamptz
);

comment on type agui.append_result is
    'The result of one call of agui.append_many. call_no is the number of the call, from 1. '
    'last_seq is the seq of its last event. If the call was refused, last_seq is null and '
    'error_code is the SQLSTATE, with the error text, its detail and its hint. recorded_at is when '
    'the events were recorded, if they continue a run in progress and all of them are new; '
    'otherwise null.';
