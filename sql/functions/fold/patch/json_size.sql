-- While PostgreSQL makes jsonb, an element takes many times the bytes that are printed for it, an
-- empty object 500. So a limit of the bytes alone would not bound the memory that patches take.
-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_size(document text)
returns bigint
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    bytes    constant pg_catalog.int8 := pg_catalog.octet_length(document);
    elements pg_catalog.int8;
begin
    if pg_catalog.strpos(document, '"') operator(pg_catalog.=) 0 then
        elements := bytes operator(pg_catalog.-) pg_catalog.octet_length(pg_catalog.translate(document, ',[{', ''));
    else
        -- Every second part between quotes is outside of strings.
        select pg_catalog.sum(pg_catalog.octet_length(part) operator(pg_catalog.-) pg_catalog.octet_length(pg_catalog.translate(part, ',[{', '')))
        into elements
        from pg_catalog.string_to_table(
            case
                when pg_catalog.strpos(document, '\') operator(pg_catalog.=) 0 then document
                else pg_catalog.replace(pg_catalog.replace(document, '\\', ''), '\"', '')
            end,
            '"'
        ) with ordinality as split (part, position)
        where (position operator(pg_catalog.%) 2) operator(pg_catalog.=) 1;
    end if;
    return bytes operator(pg_catalog.+) (agui_internal.json_element_bytes() operator(pg_catalog.*) elements);
end
$function$;

comment on function agui_internal.json_size(text) is
    'The size of a JSON document for the limit document_bytes: its bytes, and agui_internal.json_element_bytes for each comma and each '
    'opening bracket outside of strings.';

revoke execute on function agui_internal.json_size(text) from public;
