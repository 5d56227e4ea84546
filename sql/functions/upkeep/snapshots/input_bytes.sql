create or replace function agui_internal.input_bytes(thread_key uuid, run_no int)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select coalesce(sum(coalesce(pg_column_size(given.input), pg_column_size(given.skeleton) + pg_column_size(given.sections) + given.part_bytes) + 40), 0)
        from agui.run_input as given
        where given.thread_key = input_bytes.thread_key and given.run_no = input_bytes.run_no
    );
end
$$;

comment on function agui_internal.input_bytes(uuid, int) is
    'The stored size in bytes of the input beside the events of a run, with the parts that came with '
    'it; 0: it has none.';

revoke execute on function agui_internal.input_bytes(uuid, int) from public;
