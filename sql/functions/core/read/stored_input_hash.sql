create or replace function agui_internal.stored_input_hash(thread_key uuid, run_no int)
returns bytea
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select sha256(convert_to(
            coalesce(stored.input::text, agui_internal.joined_input(stored.thread_key, stored.skeleton, stored.sections, false)),
            'UTF8'
        ))
        from agui.run_input as stored
        where stored.thread_key = stored_input_hash.thread_key and stored.run_no = stored_input_hash.run_no
    );
end
$$;

comment on function agui_internal.stored_input_hash(uuid, int) is
    'sha256 of the text of the input beside the events of a run, computed from what is stored, for '
    'checks. Parts that are missing are left out. Null: the run has no input, or its row has no text.';

revoke execute on function agui_internal.stored_input_hash(uuid, int) from public;
