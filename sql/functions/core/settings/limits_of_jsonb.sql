-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.limits_of_jsonb()
returns agui_internal.fold_limits
language sql
immutable
parallel safe
return (
    67108864,             -- document_bytes
    1000,                 -- document_depth
    2147483647,           -- patch_operations
    268435456,            -- patch_copied_bytes
    9223372036854775807,  -- patch_shifted_items
    null, null, null, null
)::agui_internal.fold_limits;

comment on function agui_internal.limits_of_jsonb() is
    'The limits of JSON patches outside of folds, whatever the settings are: what jsonb can '
    'certainly hold.';

revoke execute on function agui_internal.limits_of_jsonb() from public;
