create or replace function agui_internal.inspect_ids(thread_id text, run_id text, scope text, function_name text)
returns void
language plpgsql
immutable
parallel safe
-- Every beginning of a run calls it, and pinning the search path would take longer than the tests.
-- So every name is qualified.
as $$
begin
    if thread_id is null or thread_id operator(pg_catalog.=) '' or run_id is null or run_id operator(pg_catalog.=) '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = pg_catalog.format('%s: thread id and run id must not be empty, and scope must not be null', function_name);
    end if;
    if pg_catalog.octet_length(run_id) operator(pg_catalog.>) 1024
        or pg_catalog.octet_length(thread_id) operator(pg_catalog.>) 1024
        or pg_catalog.octet_length(scope) operator(pg_catalog.>) 1024
    then
        raise exception using
            errcode = 'UI011',
            message = pg_catalog.format('%s: thread id, run id and scope are limited to 1,024 bytes each',
                pg_catalog.left(pg_catalog.format('run "%s" of thread "%s"', run_id, thread_id), 200));
    end if;
end
$$;

comment on function agui_internal.inspect_ids(text, text, text, text) is
    'Validates the ids of a new run. UI008: one is missing; UI011: one is too long.';

revoke execute on function agui_internal.inspect_ids(text, text, text, text) from public;
