create or replace function agui_internal.refuse_log_change()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Only agui_internal.repack_run, split_input and erase_thread set this. They check what they
    -- change and have the rights of the owner. Another role can set it too, but only the owner and
    -- superusers have the privilege to truncate.
    if tg_level = 'ROW' and current_setting('agui.log_change', true) = 'on' and has_table_privilege(tg_relid, 'truncate') then
        return coalesce(new, old);
    end if;
    raise exception using
        errcode = 'UI010',
        message = format('%s on agui.%s is refused: the log is append-only', tg_op, tg_table_name),
        hint = 'To correct a run, append a new one. To remove a whole thread, call agui.erase.';
end
$$;

comment on function agui_internal.refuse_log_change() is
    'Trigger: refuses changes to the log and to the tree of runs with UI010, so that no statement '
    'can destroy history by accident.';

revoke execute on function agui_internal.refuse_log_change() from public;

create or replace trigger refuse_change
    before update or delete on agui.batch
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.batch
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update of thread_key, run_no, parent_no, parent_given, run_id, first_seq or delete on agui.run
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.run
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update or delete on agui.run_input
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.run_input
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update or delete on agui.input_part
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.input_part
    for each statement execute function agui_internal.refuse_log_change();

create or replace trigger refuse_change
    before update of thread_key, scope, thread_id or delete on agui.thread
    for each row execute function agui_internal.refuse_log_change();

create or replace trigger refuse_truncate
    before truncate on agui.thread
    for each statement execute function agui_internal.refuse_log_change();
