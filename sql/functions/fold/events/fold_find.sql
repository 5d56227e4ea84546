-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.fold_find(key text, buckets jsonb[], loaded_ids text[], loaded_keys jsonb, seed bigint)
returns int
language sql
immutable
parallel safe
return coalesce(
    (buckets[agui_internal.fold_bucket(key, seed)] ->> key)::int,
    case
        when loaded_keys is not null then (loaded_keys ->> key)::int
        when key ^@ '"' then array_position(loaded_ids, agui_internal.json_string_text(key))
    end
);

comment on function agui_internal.fold_find(text, jsonb[], text[], jsonb, bigint) is
    'The first message or tool call with a key, as its number in agui_internal.fold_events, whose '
    'index is buckets, the ids of the loaded messages (loaded_ids or, once they are indexed, '
    'loaded_keys) and seed; null if there is none.';

revoke execute on function agui_internal.fold_find(text, jsonb[], text[], jsonb, bigint) from public;
