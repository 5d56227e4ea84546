create or replace function agui_internal.history_part(
    thread_id text,
    leaf agui.run,
    until bigint,
    customs_of text,
    part int,
    part_bytes int,
    out events json,
    out next_part int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    run  constant agui.run := agui_internal.run_at(leaf, until);
    sent record;
begin
    if run.run_no is null then
        events := '[]';
        return;
    end if;
    perform agui_internal.refuse_quarantined(run, until);
    sent := agui_internal.replay_part(thread_id, run, until, customs_of, part, part_bytes);
    next_part := sent.next_part;
    if sent.events is null and next_part is null then
        events := agui_internal.replay_events(thread_id, leaf, until, 'stream');
    else
        events := '[' || coalesce(sent.events, '') || ']';
    end if;
end
$function$;

comment on function agui_internal.history_part(text, agui.run, bigint, text, int, int) is
    'A part of the history of the lineage of a run (agui_internal.replay_part), and the number of the next '
    'one. If a snapshot cannot express its meaning, it is the compacted stream, in one part.';

revoke execute on function agui_internal.history_part(text, agui.run, bigint, text, int, int) from public;
