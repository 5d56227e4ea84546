create or replace function agui_internal.replay_events(thread_id text, leaf agui.run, until bigint, shape text)
returns json
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    run constant agui.run := agui_internal.run_at(leaf, until);
begin
    if shape = 'snapshot' then
        return (agui_internal.history_part(thread_id, leaf, until, null, 1, 2147483647)).events;
    elsif run.run_no is null then
        return '[]';
    end if;
    perform agui_internal.refuse_quarantined(run, until);
    return agui.compact_events(
        agui_internal.lineage_events(thread_id, run, 0, until, with_inputs => true), shape
    );
end
$function$;

comment on function agui_internal.replay_events(text, agui.run, bigint, text) is
    'The result of agui.replay for the lineage of a run, up to a seq (null: all of it), as a JSON '
    'array.';

revoke execute on function agui_internal.replay_events(text, agui.run, bigint, text) from public;
