create or replace function agui_internal.tools_of_run(run agui.run)
returns text[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    tools constant json := agui_internal.input_of_run(run) -> 'tools';
begin
    return (
        select array_agg(agui_internal.json_string_text((tool.value -> 'name')::text))
        from json_array_elements(case when json_typeof(tools) = 'array' then tools end) as tool (value)
        where json_typeof(tool.value) = 'object'
    );
end
$$;

comment on function agui_internal.tools_of_run(agui.run) is
    'The names of the tools of the client that the input of a run lists; null: it lists none.';

revoke execute on function agui_internal.tools_of_run(agui.run) from public;
