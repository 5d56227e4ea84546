create or replace function agui.model_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (
    provider text, model text, runs bigint, input_tokens numeric, output_tokens numeric, total_tokens numeric,
    reasoning_tokens numeric, cached_input_tokens numeric, cache_write_input_tokens numeric
)
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(model_report.scope);
    return query
    select
        usage.provider,
        usage.model,
        count(distinct (usage.thread_key, usage.run_no)),
        sum(usage.input_tokens),
        sum(usage.output_tokens),
        sum(usage.total_tokens),
        sum(usage.reasoning_tokens),
        sum(usage.cached_input_tokens),
        sum(usage.cache_write_input_tokens)
    from agui.usage_fact as usage
    where usage.thread_key >= own.low and usage.thread_key <= own.high
        and (model_report.since is null or usage.ended_at >= model_report.since)
        and (model_report.until is null or usage.ended_at < model_report.until)
        and (model_report.scope is null or usage.scope = model_report.scope)
    group by usage.provider, usage.model
    order by sum(usage.total_tokens) desc nulls last, usage.provider collate "C", usage.model collate "C";
end
$$;

comment on function agui.model_report(timestamptz, timestamptz, text) is
    'Returns the models that runs used which ended from a time on (null: always) and before another '
    '(null: until now), those with most tokens first. reasoning_tokens is a part of output_tokens, '
    'cached_input_tokens and cache_write_input_tokens are parts of input_tokens. scope: only of a '
    'scope (null: all that the role sees). As of the last call of agui.project().';

revoke execute on function agui.model_report(timestamptz, timestamptz, text) from public;
