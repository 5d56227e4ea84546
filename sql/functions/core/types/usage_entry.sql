create type agui_internal.usage_entry as (
    place         int,
    provider      text,
    model         text,
    input_tokens  bigint,
    output_tokens bigint,
    total_tokens  bigint,
    reasoning_tokens         bigint,
    cached_input_tokens      bigint,
    cache_write_input_tokens bigint
);

comment on type agui_internal.usage_entry is
    'The tokens that a run used of a model of a provider, at a place of its usage. See agui.model_usage.';
