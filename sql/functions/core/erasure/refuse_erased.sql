create or replace function agui_internal.refuse_erased(thread_key uuid, subject text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    erased_at timestamptz := agui_internal.erased_at(thread_key);
begin
    if erased_at is not null then
        raise exception using
            errcode = 'UI014',
            message = format('%s: the thread was erased at %s', subject, erased_at),
            hint = 'Use another thread id, or call agui.lift_erasure to permit writes to this thread.';
    end if;
end
$$;

comment on function agui_internal.refuse_erased(uuid, text) is
    'Raises UI014 if the thread was erased and the erasure was not lifted.';

revoke execute on function agui_internal.refuse_erased(uuid, text) from public;
