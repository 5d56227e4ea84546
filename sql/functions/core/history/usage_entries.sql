-- Planned as part of the calling query. So it has no search_path and names its columns.
create or replace function agui_internal.usage_entries(usage json)
returns setof agui_internal.usage_entry
language sql
immutable
parallel safe
rows 2
begin atomic
    select
        entry.place, entry.provider, entry.model, entry.input_tokens, entry.output_tokens,
        coalesce(entry.total_tokens, entry.input_tokens + entry.output_tokens),
        entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    from (
        select
            item.position::int as place,
            nullif(agui_internal.json_string_text(member.provider::text), '') as provider,
            nullif(agui_internal.json_string_text(member.model::text), '') as model,
            agui_internal.json_count(member."inputTokens") as input_tokens,
            agui_internal.json_count(member."outputTokens") as output_tokens,
            agui_internal.json_count(member."totalTokens") as total_tokens,
            agui_internal.json_count(member."reasoningTokens") as reasoning_tokens,
            agui_internal.json_count(member."cachedInputTokens") as cached_input_tokens,
            agui_internal.json_count(member."cacheWriteInputTokens") as cache_write_input_tokens
        from json_array_elements(usage) with ordinality as item (value, position)
        cross join lateral json_to_record(case when json_typeof(item.value) = 'object' then item.value else '{}' end) as member (
            provider json, model json, "inputTokens" json, "outputTokens" json, "totalTokens" json,
            "reasoningTokens" json, "cachedInputTokens" json, "cacheWriteInputTokens" json
        )
        offset 0
    ) as entry
    where num_nonnulls(
        entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    ) > 0;
end;

comment on function agui_internal.usage_entries(json) is
    'The entries of a usage (guarded, a JSON array or null) that report a count. A count that is no '
    'whole number from 0 to 2^53 - 1 is left out. Where an entry has no totalTokens, the sum of '
    'inputTokens and outputTokens stands for it.';

revoke execute on function agui_internal.usage_entries(json) from public;
