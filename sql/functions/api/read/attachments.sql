create or replace function agui.attachments(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.attachment_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), at_seq, at_time);
begin
    return query
    select
        attachment.n, attachment.message_id, attachment.type, attachment.mime_type, attachment.filename,
        octet_length(agui_internal.base64_text(attachment.value)) * 3::bigint / 4
    from agui_internal.fold_attachments(fold) as attachment
    order by attachment.n;
end
$$;

comment on function agui.attachments(text, text, bigint, timestamptz, text) is
    'Returns the images, files and other data that the messages of a conversation hold, without the '
    'data, after a run (null: the head) or, for a point in the past, after event at_seq of its '
    'lineage or at at_time, whichever is earlier. Parts that name a URL are left out. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.attachments(text, text, bigint, timestamptz, text) from public;
