create or replace function agui_internal.fold_assistant_call(
    call_key text,
    nodes agui_internal.fold_node[],
    first_node int,
    following int[]
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
    for node in 1 .. cardinality(nodes) loop
        if nodes[node].key = call_key and nodes[nodes[node].parent].role = 'assistant' then
            calls := array_append(calls, node);
        end if;
    end loop;

    while message is not null and cardinality(calls) > 0 loop
        foreach call in array calls loop
            if nodes[call].parent = message then
                return call;
            end if;
        end loop;
        message := following[message];
    end loop;
    return null;
end
$function$;

comment on function agui_internal.fold_assistant_call(text, agui_internal.fold_node[], int, int[]) is
    'The first tool call with a key in the assistant messages of agui_internal.fold_events, in the order of the conversation; null when there is '
    'none. For calls that a message of another role also has.';

revoke execute on function agui_internal.fold_assistant_call(text, agui_internal.fold_node[], int, int[]) from public;
