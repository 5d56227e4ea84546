-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.usage_entries(usage json, names jsonb, model text)
returns setof agui_internal.usage_entry
language sql
immutable
parallel safe
rows 2
begin atomic
    select
        entry.place, entry.provider, coalesce(entry.model, usage_entries.model), entry.input_tokens, entry.output_tokens,
        coalesce(entry.total_tokens, entry.input_tokens + entry.output_tokens),
        entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    from (
        select
            item.position::int as place,
            nullif(agui_internal.json_string_text(member.provider::text), '') as provider,
            nullif(agui_internal.json_string_text(member.model::text), '') as model,
            agui_internal.json_count(member.input_tokens) as input_tokens,
            agui_internal.json_count(member.output_tokens) as output_tokens,
            agui_internal.json_count(member.total_tokens) as total_tokens,
            agui_internal.json_count(member.reasoning_tokens) as reasoning_tokens,
            agui_internal.json_count(member.cached_input_tokens) as cached_input_tokens,
            agui_internal.json_count(member.cache_write_input_tokens) as cache_write_input_tokens
        from json_array_elements(case json_typeof(usage) when 'array' then usage when 'object' then json_build_array(usage) end)
            with ordinality as item (value, position)
        cross join lateral (
            -- Where agui.map_usage says, and as AG-UI, TanStack and Agent Framework name it.
            select
                coalesce(item.value #> string_to_array(names ->> 'provider', '.'), item.value -> 'provider') as provider,
                coalesce(item.value #> string_to_array(names ->> 'model', '.'), item.value -> 'model') as model,
                coalesce(
                    item.value #> string_to_array(names ->> 'inputTokens', '.'), item.value -> 'inputTokens',
                    item.value -> 'promptTokens', item.value -> 'input_token_count'
                ) as input_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'outputTokens', '.'), item.value -> 'outputTokens',
                    item.value -> 'completionTokens', item.value -> 'output_token_count'
                ) as output_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'totalTokens', '.'), item.value -> 'totalTokens',
                    item.value -> 'total_token_count'
                ) as total_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'reasoningTokens', '.'), item.value -> 'reasoningTokens',
                    item.value -> 'completionTokensDetails' -> 'reasoningTokens', item.value -> 'reasoning_output_token_count'
                ) as reasoning_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'cachedInputTokens', '.'), item.value -> 'cachedInputTokens',
                    item.value -> 'promptTokensDetails' -> 'cachedTokens', item.value -> 'cache_read_input_token_count'
                ) as cached_input_tokens,
                coalesce(
                    item.value #> string_to_array(names ->> 'cacheWriteInputTokens', '.'), item.value -> 'cacheWriteInputTokens',
                    item.value -> 'promptTokensDetails' -> 'cacheWriteTokens', item.value -> 'cache_creation_input_token_count'
                ) as cache_write_input_tokens
            offset 0
        ) as member
        offset 0
    ) as entry
    where num_nonnulls(
        entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    ) > 0;
end;

comment on function agui_internal.usage_entries(json, jsonb, text) is
    'The entries of a usage (guarded, a JSON object or array; none of another value) that report a count, with the '
    'members named as names says (agui.map_usage), else as AG-UI and frameworks do. model is that of entries that '
    'name none. A count that is no '
    'whole number from 0 to 2^53 - 1 is left out. Where an entry has no totalTokens, the sum of '
    'inputTokens and outputTokens stands for it.';

revoke execute on function agui_internal.usage_entries(json, jsonb, text) from public;
