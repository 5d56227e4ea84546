create or replace function agui.attachment_data(
    thread_id text,
    n         int,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default '',
    out message_id text,
    out type       text,
    out mime_type  text,
    out filename   text,
    out data       bytea
)
returns setof record
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
    encoded text;
begin
    select found.message_id, found.type, found.mime_type, found.filename, agui_internal.base64_text(found.value)
    into attachment_data.message_id, attachment_data.type, attachment_data.mime_type, attachment_data.filename, encoded
    from agui_internal.fold_attachments(fold) as found
    where found.n = attachment_data.n;
    if encoded is null then
        return;
    end if;
    begin
        data := decode(rpad(encoded, (octet_length(encoded) + 3) / 4 * 4, '='), 'base64');
    exception
        when invalid_parameter_value then
            null;
    end;
    return next;
end
$$;

comment on function agui.attachment_data(text, int, text, bigint, timestamptz, text) is
    'Returns what the part number n of agui.attachments holds, for the same run and point in time; no '
    'row: there is none. data is null if its text is not base64. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.attachment_data(text, int, text, bigint, timestamptz, text) from public;
