create or replace function agui_internal.usage_members()
returns text[]
language sql
immutable
parallel safe
return array[
    'provider', 'model', 'inputTokens', 'outputTokens', 'totalTokens', 'reasoningTokens', 'cachedInputTokens', 'cacheWriteInputTokens'
];

comment on function agui_internal.usage_members() is 'The members of an entry of usage that agui.usage counts.';

revoke execute on function agui_internal.usage_members() from public;
