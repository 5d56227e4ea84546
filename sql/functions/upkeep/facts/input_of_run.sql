create or replace function agui_internal.input_of_run(run agui.run)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    place agui_internal.input_place;
    input json;
begin
    select * into place from agui_internal.input_places(run.thread_key, array[run.run_no], array[coalesce(run.last_seq, 9223372036854775807)]);
    if place.run_no is not null then
        select given.input into input from agui.input as given where given.thread_key = run.thread_key and given.run_no = run.run_no;
        return agui_internal.json_guarded(input);
    end if;
    return (
        select event.input
        from agui.batch as batch
        cross join lateral json_to_recordset(agui_internal.json_guarded(batch.events)) as event (type text, input json)
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
            and (strpos(batch.events::text, 'RUN_STARTED') > 0 or strpos(batch.events::text, '\u00') > 0)
            and event.type = any (agui_internal.event_types('start run'))
            and json_typeof(event.input) = 'object'
        order by batch.first_seq
        limit 1
    );
end
$$;

comment on function agui_internal.input_of_run(agui.run) is
    'The input of a run (guarded), which RUN_STARTED carries or which is stored beside the events; null: none.';

revoke execute on function agui_internal.input_of_run(agui.run) from public;
