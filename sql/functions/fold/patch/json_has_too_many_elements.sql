create or replace function agui_internal.json_has_too_many_elements(document text, document_bytes bigint)
returns boolean
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    -- An element takes two bytes at least.
    return octet_length(document)::bigint * (agui_internal.json_element_bytes() / 2) > document_bytes
        and agui_internal.json_size(document) - octet_length(document) > document_bytes;
end
$function$;

comment on function agui_internal.json_has_too_many_elements(text, bigint) is
    'Whether the elements of a document (guarded JSON text) alone exceed the limit document_bytes, so that to make jsonb of it would take '
    'too much memory.';

revoke execute on function agui_internal.json_has_too_many_elements(text, bigint) from public;
