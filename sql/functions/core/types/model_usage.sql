create type agui.model_usage as (
    provider                 text,
    model                    text,
    input_tokens             bigint,
    output_tokens            bigint,
    total_tokens             bigint,
    reasoning_tokens         bigint,
    cached_input_tokens      bigint,
    cache_write_input_tokens bigint,
    runs                     bigint,
    all_runs                 bigint,
    runs_without_usage       bigint
);

comment on type agui.model_usage is
    'The tokens that runs used of a model of a provider (null: not named), as AG-UI counts them: '
    'total_tokens is input_tokens plus output_tokens; reasoning_tokens is a part of output_tokens, '
    'cached_input_tokens and cache_write_input_tokens are parts of input_tokens, so never add '
    'them. Null: no run reported the count. 9223372036854775807: that many or more. runs: how many '
    'runs used the model. The same in all rows: all_runs, how many runs were read, and '
    'runs_without_usage, how many of them reported nothing.';
