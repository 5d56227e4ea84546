create or replace function agui_internal.why_ended(run agui.run, max_length int default 2147483647)
returns agui_internal.run_end
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    why agui_internal.run_end;
    event json;
begin
    why.stop_reason := run.stop_reason;
    why.cut_off_reason := run.cut_off_reason;
    if run.status in ('failed', 'cut_off') or run.status = 'cancelled' and run.stop_reason is null then
        select agui_internal.json_guarded(batch.events) -> (run.end_seq - batch.first_seq)::int into event
        from agui_internal.batch_with(run.thread_key, run.end_seq) as batch;
    end if;
    if run.status = 'cancelled' then
        why.stop_reason := coalesce(
            why.stop_reason,
            case when json_typeof(event -> 'result') = 'object' then agui_internal.json_string_text((event -> 'result' -> 'reason')::text) end
        );
    else
        why.error_code := agui_internal.json_string_text((event -> 'code')::text);
        why.error_message := agui_internal.json_string_text((event -> 'message')::text);
    end if;
    why.error_code := left(why.error_code, max_length);
    why.error_message := left(why.error_message, max_length);
    why.stop_reason := left(why.stop_reason, max_length);
    why.cut_off_reason := left(why.cut_off_reason, max_length);
    return why;
end
$$;

comment on function agui_internal.why_ended(agui.run, int) is
    'Why a run ended as it did. Reads the batch of its last end, of a run that failed, was cut off '
    'or was cancelled without a request; nothing of the others. max_length: of each text, in '
    'characters.';

revoke execute on function agui_internal.why_ended(agui.run, int) from public;
