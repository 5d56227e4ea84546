create or replace function agui_internal.refuse_disorder(call agui_internal.event_inspection, subject text)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if call.restarts_at is not null then
        raise exception using
            errcode = 'UI009',
            message = format('%s: event %s of the call is a RUN_STARTED, but a run has only one, as its first event', subject, call.restarts_at),
            detail = format('{"event": %s}', call.restarts_at),
            hint = 'Append the events of each run in a separate call.';
    end if;
    if call.late_at is not null then
        raise exception using
            errcode = 'UI005',
            message = format('%s: event %s of the call comes after the end of the run', subject, call.late_at),
            detail = format('{"event": %s}', call.late_at),
            hint = 'Append late events as a new run. Without strict they are accepted.';
    end if;
    if call.other_thread is not null then
        raise exception using
            errcode = 'UI021',
            message = format('%s: RUN_STARTED names another thread, %s', subject, agui_internal.quoted_id(call.other_thread)),
            hint = 'Append to the thread that the events belong to. Without strict they are accepted.';
    end if;
end
$$;

comment on function agui_internal.refuse_disorder(agui_internal.event_inspection, text) is
    'Raises the errors of a strict call that the call itself shows. UI005: an event after the end '
    'of the run; UI009: a RUN_STARTED that is not the first event; UI021: a RUN_STARTED with the '
    'id of another thread.';

revoke execute on function agui_internal.refuse_disorder(agui_internal.event_inspection, text) from public;
