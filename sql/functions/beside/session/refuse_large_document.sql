create or replace function agui_internal.refuse_large_document(document json, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 64 * 1024 * 1024;
    max_depth constant int := 1000;
    bytes     constant int := agui_internal.json_octets(document);
begin
    if bytes > max_bytes then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the document has %s bytes, more than the limit of %s', subject, bytes, max_bytes);
    end if;
    -- Nesting takes bytes: most documents are too short to be nested too deeply.
    if bytes > 2 * max_depth and agui_internal.json_too_deep(document, max_depth) then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the document is nested more than %s levels deep', subject, max_depth);
    end if;
end
$$;

comment on function agui_internal.refuse_large_document(json, text) is
    'Raises UI011 for a session state document or a checkpoint of more than 64 MB or nested more '
    'than 1,000 levels deep.';

revoke execute on function agui_internal.refuse_large_document(json, text) from public;
