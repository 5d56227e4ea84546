create or replace function agui_internal.unanswered_calls_at(run agui.run)
returns table (
    call_id   text,
    arguments text
)
language plpgsql
stable
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold;
begin
    begin
        fold := agui_internal.fold_at(run, null);
    exception
        when sqlstate 'UI022' or sqlstate 'UI023' then
            return;  -- no client has what cannot be folded
    end;
    return query
    select named.call_id, min(agui_internal.json_string_text(call.arguments))
    from agui_internal.fold_calls(fold) as call
    cross join lateral (select agui_internal.json_string_text(call.call_id) as call_id offset 0) as named
    where named.call_id not in (
        select coalesce(agui_internal.json_string_text((message.body -> 'toolCallId')::text), '')
        from agui_internal.fold_messages(fold, array['tool']) as message
    )
    group by named.call_id;
end
$$;

comment on function agui_internal.unanswered_calls_at(agui.run) is
    'The tool calls that the conversation has at the end of a run, and to which it has no result, with their arguments.';

revoke execute on function agui_internal.unanswered_calls_at(agui.run) from public;
