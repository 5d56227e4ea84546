create or replace function agui_internal.refuse_erased(thread_key uuid, subject text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    erased_at timestamptz := agui_internal.erased_at(thread_key);
begin
    if erased_at is not null then
        raise exception using
            errcode = 'UI014',
            message = format('%s: the thread was erased at %s', subject, erased_at),
            hint = 'Use another thread id, or let this one begin anew with agui.lift_erasure.';
    end if;
end
$$;

comment on function agui_internal.refuse_erased(uuid, text) is
    'Refuses (UI014) what would bring a thread back that was erased and is not allowed again.';

revoke execute on function agui_internal.refuse_erased(uuid, text) from public;
