create or replace function agui_internal.fold_input(start agui_internal.fold, thread_key uuid, run_no int)
returns agui_internal.fold
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    result agui_internal.fold;
begin
    result := agui_internal.fold_given(start, (
        select '{"type":"RUN_STARTED","input":' || given.input || '}'
        from agui.input as given
        where given.thread_key = fold_input.thread_key and given.run_no = fold_input.run_no
    ));
    result.through_seq := start.through_seq;
    return result;
end
$$;

comment on function agui_internal.fold_input(agui_internal.fold, uuid, int) is
    'Applies the input that is stored beside the events of a run without RUN_STARTED to the result '
    'of its lineage, before the first event of the run.';

revoke execute on function agui_internal.fold_input(agui_internal.fold, uuid, int) from public;
