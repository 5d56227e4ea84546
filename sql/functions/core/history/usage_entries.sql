create or replace function agui_internal.usage_entries(usage json)
returns setof agui_internal.usage_entry
language plpgsql
immutable
parallel safe
rows 2
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    if usage is null then
        return;
    end if;
    return query
    select entry.*
    from (
        select
            item.position::int,
            nullif(agui_internal.json_string_text(member.provider::text), ''),
            nullif(agui_internal.json_string_text(member.model::text), ''),
            given.input,
            given.output,
            coalesce(agui_internal.json_count(member."totalTokens"), given.input + given.output),
            agui_internal.json_count(member."reasoningTokens"),
            agui_internal.json_count(member."cachedInputTokens"),
            agui_internal.json_count(member."cacheWriteInputTokens")
        from json_array_elements(usage) with ordinality as item (value, position)
        cross join lateral json_to_record(case when json_typeof(item.value) = 'object' then item.value else '{}' end) as member (
            provider json, model json, "inputTokens" json, "outputTokens" json, "totalTokens" json,
            "reasoningTokens" json, "cachedInputTokens" json, "cacheWriteInputTokens" json
        )
        cross join lateral (
            select agui_internal.json_count(member."inputTokens") as input, agui_internal.json_count(member."outputTokens") as output
        ) as given
    ) as entry (
        place, provider, model, input_tokens, output_tokens, total_tokens, reasoning_tokens, cached_input_tokens, cache_write_input_tokens
    )
    where num_nonnulls(
        entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.reasoning_tokens, entry.cached_input_tokens, entry.cache_write_input_tokens
    ) > 0;
end
$$;

comment on function agui_internal.usage_entries(json) is
    'The entries of a usage (guarded, a JSON array or null) that report a count. A count that is no '
    'whole number from 0 to 2^53 - 1 is left out. Where an entry has no totalTokens, the sum of '
    'inputTokens and outputTokens stands for it.';

revoke execute on function agui_internal.usage_entries(json) from public;
