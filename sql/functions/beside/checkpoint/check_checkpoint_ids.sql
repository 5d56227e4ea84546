create or replace function agui_internal.check_checkpoint_ids(checkpoint_id text, namespace text, subject text, run_id text default null)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if checkpoint_id is null or checkpoint_id = '' or namespace is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: a checkpoint needs a non-empty id and a namespace that is not null', subject);
    end if;
    if greatest(octet_length(checkpoint_id), octet_length(namespace)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the checkpoint id and the namespace are limited to 1,024 bytes each', subject);
    end if;
    if octet_length(run_id) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the id of its run is limited to 1,024 bytes', subject);
    end if;
end
$$;

comment on function agui_internal.check_checkpoint_ids(text, text, text, text) is
    'Raises UI008 for an empty checkpoint id or a namespace that is null, and UI011 for these or a run '
    'id that are too long.';

revoke execute on function agui_internal.check_checkpoint_ids(text, text, text, text) from public;
