-- Not strict and without a query, so that it is inlined.
create or replace function agui_internal.json_operation_problem(operation jsonb, op text, path text[], value jsonb)
returns text
language sql
immutable
parallel safe
return case
    when path is null then case
        when jsonb_typeof(operation) <> 'object' then 'it is not a JSON object'
        when operation ? 'path' then 'its path is not a JSON pointer'
        else 'it has no path'
    end
    when op in ('replace', 'add', 'test') then case when value is null then 'it has no value' end
    when op = 'remove' then null
    when op in ('move', 'copy') then case
        when agui_internal.json_pointer(operation ->> 'from') is not null then null
        when operation ? 'from' then 'its from is not a JSON pointer'
        else 'it has no from'
    end
    when operation ? 'op' then 'there is no such operation'
    else 'it has no op'
end;

comment on function agui_internal.json_operation_problem(jsonb, text, text[], jsonb) is
    'What is wrong with an operation of a JSON patch, whatever the document is; null: nothing. op, '
    'path (its tokens) and value are members of the operation.';

revoke execute on function agui_internal.json_operation_problem(jsonb, text, text[], jsonb) from public;
