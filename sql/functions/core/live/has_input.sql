create or replace function agui_internal.has_input(run agui.run, input json)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    stored_hash bytea;
    stored      text;
begin
    select given.hash into stored_hash
    from agui.input as given
    where given.thread_key = run.thread_key and given.run_no = run.run_no;
    if found then
        return stored_hash is not distinct from sha256(convert_to(input::text, 'UTF8'));
    end if;

    select agui_internal.json_unguard(event.input::text) into stored
    from agui_internal.batch_with(run.thread_key, run.first_seq) as batch
    cross join lateral rows from (
        json_to_recordset(agui_internal.json_guarded(batch.events)) as (type text, input json)
    ) with ordinality as event (type, input, position)
    where event.type = 'RUN_STARTED' and json_typeof(event.input) = 'object'
        and batch.first_seq + event.position - 1 = run.first_seq;
    return case
        when stored is null or input is null then stored is null and input is null
        else agui_internal.json_equal(stored, input::text)
    end;
end
$$;

comment on function agui_internal.has_input(agui.run, json) is
    'Whether a run began with this input (null: with none). An input that was given beside the '
    'events must have the same bytes. One in RUN_STARTED must have the same value, because agents '
    'write it anew.';

revoke execute on function agui_internal.has_input(agui.run, json) from public;
