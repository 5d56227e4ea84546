create or replace view agui.usage_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    activity.agent,
    run.ended_at,
    usage.provider,
    usage.model,
    usage.input_tokens,
    usage.output_tokens,
    usage.total_tokens,
    usage.reasoning_tokens,
    usage.cached_input_tokens,
    usage.cache_write_input_tokens,
    usage.thread_key,
    usage.run_no
from agui.projected_usage as usage
join agui.run as run on run.thread_key = usage.thread_key and run.run_no = usage.run_no
join agui.thread as thread on thread.thread_key = usage.thread_key
left join agui.thread_activity as activity on activity.thread_key = usage.thread_key;

comment on view agui.usage_fact is
    'The tokens that runs used, as agui.project() found them after their ends: a row for each entry of '
    'usage that counts for agui.usage.';
comment on column agui.usage_fact.scope is 'Scope of the thread.';
comment on column agui.usage_fact.thread_id is 'The thread.';
comment on column agui.usage_fact.run_id is 'The run.';
comment on column agui.usage_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.usage_fact.ended_at is 'When the run ended.';
comment on column agui.usage_fact.provider is 'Who runs the model; null: not named.';
comment on column agui.usage_fact.model is 'The model; null: not named.';
comment on column agui.usage_fact.input_tokens is 'Tokens of the prompt; null: not reported.';
comment on column agui.usage_fact.output_tokens is 'Tokens of the answer; null: not reported.';
comment on column agui.usage_fact.total_tokens is 'As reported, else input_tokens plus output_tokens.';
comment on column agui.usage_fact.reasoning_tokens is 'A part of output_tokens: never add it.';
comment on column agui.usage_fact.cached_input_tokens is 'A part of input_tokens: never add it.';
comment on column agui.usage_fact.cache_write_input_tokens is 'A part of input_tokens: never add it.';
comment on column agui.usage_fact.thread_key is 'Key of the thread.';
comment on column agui.usage_fact.run_no is 'Number of the run in its thread.';
