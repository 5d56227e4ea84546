create or replace function agui_internal.show_session_state(state agui.session_state)
returns agui.session_document
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        state.key,
        (select run.run_id from agui.run as run where run.thread_key = state.thread_key and run.run_no = state.run_no),
        state.version,
        state.saved_at,
        state.document
$$;

comment on function agui_internal.show_session_state(agui.session_state) is
    'Converts session state to the row that users see, with the id of its run.';

revoke execute on function agui_internal.show_session_state(agui.session_state) from public;
