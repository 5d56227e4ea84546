create or replace function agui_internal.fold_assistant_call(
    call_key text,
    keys text[],
    roles text[],
    parents int[],
    first_node int,
    following int[],
    is_linked boolean,
    loaded_count int
)
returns int
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    calls   int[] := '{}';
    call    int;
    message int := first_node;
begin
    for node in 1 .. coalesce(array_upper(keys, 1), 0) loop
        if keys[node] = call_key and roles[parents[node]] = 'assistant' then
            calls := array_append(calls, node);
        end if;
    end loop;

    while message is not null and cardinality(calls) > 0 loop
        foreach call in array calls loop
            if parents[call] = message then
                return call;
            end if;
        end loop;
        message := case when not is_linked and message < loaded_count then message + 1 else following[message] end;
    end loop;
    return null;
end
$function$;

comment on function agui_internal.fold_assistant_call(text, text[], text[], int[], int, int[], boolean, int) is
    'The first tool call with a key in the assistant messages of agui_internal.fold_events, in the order of the conversation; null when there is '
    'none. For calls that a message of another role also has.';

revoke execute on function agui_internal.fold_assistant_call(text, text[], text[], int[], int, int[], boolean, int) from public;
