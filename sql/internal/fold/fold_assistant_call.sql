create or replace function agui_internal.fold_assistant_call(
    call_key text,
    first_node int,
    following int[],
    keys text[],
    roles text[],
    parents int[]
)
returns int
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $function$
declare
    calls   constant int[] := array(
        select call.node
        from unnest(keys) with ordinality as call (key, node)
        where call.key = call_key
        and roles[parents[call.node]] = 'assistant'
        order by call.node
    );
    message int := first_node;
    call    int;
begin
    while message is not null and cardinality(calls) > 0 loop
        foreach call in array calls loop
            if parents[call] = message then
                return call;
            end if;
        end loop;
        message := following[message];
    end loop;
    return null;
end
$function$;

comment on function agui_internal.fold_assistant_call(text, int, int[], text[], text[], int[]) is
    'The first tool call with a key in the assistant messages of agui_internal.fold_events, in the order of the conversation; null when there is '
    'none. For calls that a message of another role also has.';

revoke execute on function agui_internal.fold_assistant_call(text, int, int[], text[], text[], int[]) from public;
