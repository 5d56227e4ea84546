create or replace function agui.message_origin(thread_id text, message_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf      constant agui.run := agui_internal.find_run(thread_id, run_id, scope);
    -- As the fold decodes it.
    wanted    constant text := agui_internal.json_string_text(agui_internal.json_guard(to_json(message_id)::text));
    span      record;
    ancestor  agui.run;
    origin_no int;
begin
    select * into span from agui_internal.origin_span(leaf, wanted);
    for ancestor in
        select run.*
        from agui_internal.ancestors(leaf) as run
        where run.run_no between span.from_no and span.to_no
        order by run.run_no
    loop
        if agui_internal.brings_message(ancestor, message_id, wanted, span.after_seq) then
            origin_no := ancestor.run_no;
            exit;
        end if;
    end loop;
    return query
    select known.*
    from agui.lineage(thread_id, leaf.run_id, scope) as known
    where known.run_no = coalesce(origin_no, span.holder_no);
end
$$;

comment on function agui.message_origin(text, text, text, text) is
    'Returns the run on the lineage of a run (null: of the head) that first brought the message '
    'with an id, in its events or in its input; no row if there is none. Clients send all messages '
    'in every input, so later runs usually bring it, too. If a message went and came again, the '
    'run is one of those that brought it. To edit or regenerate the message, begin a run whose '
    'parent is the parent of this one. The snapshots of the lineage say between which of them the '
    'message arrived, and only those runs are searched. Folds only a run that has a tool call with '
    'the id of the message and another parent. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.message_origin(text, text, text, text) from public;
