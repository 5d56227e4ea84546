-- Called in innermost loops, where pinning the search path would take longer than the work. So
-- every name is qualified, operators too.
create or replace function agui_internal.json_guarded(document json)
returns json
language plpgsql
immutable
strict
parallel safe
as $function$
declare
    plain   pg_catalog.text;
    guarded pg_catalog.text;
begin
    if pg_catalog.pg_column_size(document) operator(pg_catalog.>) 1000000 then
        -- Of a large document a copy counts.
        if (
            select given.bytes operator(pg_catalog.!~~) '%\\\\\\\\%'::pg_catalog.bytea and given.bytes operator(pg_catalog.!~~) '%\\\\u%'::pg_catalog.bytea
            from (select agui_internal.json_bytes(document) as bytes offset 0) as given
        ) then
            return document;
        end if;
    end if;
    plain := document;
    guarded := agui_internal.json_guard(plain);
    -- A cast from text to json validates it, which takes as long as reading it.
    return case when guarded operator(pg_catalog.=) plain then document else guarded::pg_catalog.json end;
end
$function$;

comment on function agui_internal.json_guarded(json) is 'JSON as agui_internal.json_guard rewrites it.';

revoke execute on function agui_internal.json_guarded(json) from public;
