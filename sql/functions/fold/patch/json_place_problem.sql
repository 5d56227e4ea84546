-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_place_problem(step text, parent_kind text)
returns text
language sql
immutable
parallel safe
return case
    when step in ('take', 'fetch') then 'nothing is at its from'
    when step <> 'add' then 'nothing is at the path'
    when parent_kind is null then 'the parent of the path does not exist'
    when parent_kind = 'array' then 'the array has no such position'
    when parent_kind <> 'object' then 'the parent of the path is neither an object nor an array'
end;

comment on function agui_internal.json_place_problem(text, text) is
    'Why a step of agui_internal.json_patch_apply fails whose target does not exist, given the '
    'type of what would contain the target (null: that does not exist either).';

revoke execute on function agui_internal.json_place_problem(text, text) from public;
