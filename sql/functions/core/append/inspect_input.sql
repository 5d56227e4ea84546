create or replace function agui_internal.inspect_input(input json, events json, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if json_typeof(input) <> 'object' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: its input is a JSON %s, expected an object', subject, json_typeof(input)),
            hint = 'The input of a run is the RunAgentInput object of AG-UI.';
    end if;
    if agui_internal.json_octets(events) + agui_internal.json_octets(input) > agui_internal.max_call_bytes() then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the call has %s bytes of events and %s of input, together more than the limit of %s',
                subject, agui_internal.json_octets(events), agui_internal.json_octets(input), agui_internal.max_call_bytes()),
            hint = 'Begin the run with fewer events, and append the others in later calls.';
    end if;
    if agui_internal.json_too_deep(input, agui_internal.max_json_depth()) then
        raise exception using
            errcode = 'UI011',
            message = format('%s: its input is nested more than %s levels deep', subject, agui_internal.max_json_depth());
    end if;
end
$$;

comment on function agui_internal.inspect_input(json, json, text) is
    'Validates the input of a run. UI008: not an object; UI011: too large together with the events '
    'of the call, or nested too deeply.';

revoke execute on function agui_internal.inspect_input(json, json, text) from public;
