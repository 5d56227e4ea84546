create or replace function agui_internal.inspect_ids(thread_id text, run_id text, scope text, function_name text)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if thread_id is null or thread_id = '' or run_id is null or run_id = '' or scope is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: thread id and run id must not be empty, and scope must not be null', function_name);
    end if;
    if greatest(octet_length(run_id), octet_length(thread_id), octet_length(scope)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: thread id, run id and scope are limited to 1,024 bytes each',
                left(format('run "%s" of thread "%s"', run_id, thread_id), 200));
    end if;
end
$$;

comment on function agui_internal.inspect_ids(text, text, text, text) is
    'Validates the ids of a new run. UI008: one is missing; UI011: one is too long.';

revoke execute on function agui_internal.inspect_ids(text, text, text, text) from public;
