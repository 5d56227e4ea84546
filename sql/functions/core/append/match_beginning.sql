create or replace function agui_internal.match_beginning(
    thread_key uuid,
    run_no     int,
    after_seq  bigint,
    input      json,
    parent_run_id text,
    subject    text
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    stored_hash   bytea;
    stored_parent text;
begin
    if after_seq <= 0 then
        select given.hash into stored_hash
        from agui.input as given
        where given.thread_key = match_beginning.thread_key and given.run_no = match_beginning.run_no;
        if stored_hash is distinct from sha256(convert_to(input::text, 'UTF8')) then
            raise exception using
                errcode = 'UI007',
                message = format('%s: %s', subject, case
                    when input is null then 'it was begun with an input, but the call brings none'
                    when stored_hash is null then 'it was begun without an input, but the call brings one'
                    else 'the input of the call differs from the input that the run began with'
                end),
                hint = 'A call that repeats the beginning of a run must have the same input, byte for byte. Check whether another writer writes to this run.';
        end if;
    elsif input is not null then
        raise exception using
            errcode = 'UI008',
            message = format('%s has already begun: an input comes only with the call that begins a run', subject),
            hint = 'To repeat that call, pass 0 as the seq that it comes after.';
    end if;

    if parent_run_id is not null then
        select coalesce(parent.run_id, '') into stored_parent
        from agui.run as run
        left join agui.run as parent
            on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
        where run.thread_key = match_beginning.thread_key and run.run_no = match_beginning.run_no;
        if stored_parent <> parent_run_id then
            raise exception using
                errcode = 'UI007',
                message = format('%s: the call names %s as its parent, it was begun with %s', subject,
                    case when parent_run_id = '' then 'no run' else '"' || parent_run_id || '"' end,
                    case when stored_parent = '' then 'none' else '"' || stored_parent || '"' end),
                hint = 'The parent of a run never changes. Check whether another writer writes to this run.';
        end if;
    end if;
end
$$;

comment on function agui_internal.match_beginning(uuid, int, bigint, json, text, text) is
    'Compares the input and the parent of a call with those that the run began with. UI007: they '
    'differ; UI008: the call has an input and is no repeat of the beginning.';

revoke execute on function agui_internal.match_beginning(uuid, int, bigint, json, text, text) from public;
