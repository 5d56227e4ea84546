create type agui.append_result as (
    call_no    int,
    last_seq   bigint,
    error_code text,
    error      text,
    detail     text,
    hint       text
);

comment on type agui.append_result is
    'What became of one of the calls of agui.append_many, which are numbered from 1: the seq of its last event; or, when it was refused, the '
    'SQLSTATE and what is wrong, with last_seq null.';
