-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui_internal.fold_close_lane(lanes jsonb, owner text)
returns jsonb
language plpgsql
immutable
parallel safe
as $function$
begin
    if jsonb_array_length(lanes) = 1 then
        return case when lanes -> 0 -> 'lane' <> coalesce(owner, 'null')::jsonb then lanes end;
    end if;
    return (
        select jsonb_agg(lane.value order by lane.position)
        from jsonb_array_elements(lanes) with ordinality as lane (value, position)
        where lane.value -> 'lane' <> coalesce(owner, 'null')::jsonb
    );
end
$function$;

comment on function agui_internal.fold_close_lane(jsonb, text) is
    'The open lanes without the one of a subagent (a JSON string of guarded text; null: the main agent); null when none is left.';

revoke execute on function agui_internal.fold_close_lane(jsonb, text) from public;
