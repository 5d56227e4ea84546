create or replace function agui_internal.json_too_deep(document text, max_depth int)
returns boolean
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Each level needs a bracket. Most documents have too few brackets, so they need not be parsed.
    if octet_length(document) - octet_length(replace(replace(document, '[', ''), '{', '')) <= max_depth then
        return false;
    end if;

    return agui_internal.json_depth(document) > max_depth;
end
$$;

comment on function agui_internal.json_too_deep(text, int) is
    'Whether arrays and objects of a valid JSON document are nested more than max_depth levels '
    'deep.';

revoke execute on function agui_internal.json_too_deep(text, int) from public;
