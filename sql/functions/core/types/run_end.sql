create type agui_internal.run_end as (
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text
);

comment on type agui_internal.run_end is
    'Why a run ended as it did: code and message of its RUN_ERROR, the reason of the stop that '
    'cancelled it, and the reason why it was ended on behalf of its writer.';
