create type agui_internal.input_place as (
    run_no   int,
    seq      bigint,
    is_start boolean
);

comment on type agui_internal.input_place is
    'Where the input stored beside the events of a run takes effect: at its first RUN_STARTED '
    '(is_start), as if that carried it, or, without one, before its first event.';
