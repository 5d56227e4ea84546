create or replace function agui_internal.fold_size(fold agui_internal.fold)
returns bigint
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $function$
begin
    return octet_length(fold.state) + octet_length(fold.interrupts)
        + (select coalesce(sum(octet_length(body)), 0) from unnest(fold.bodies) as body);
end
$function$;

comment on function agui_internal.fold_size(agui_internal.fold) is
    'The size of a fold, which the setting fold_bytes limits: the bytes of its messages, state and '
    'interrupts, without pending patches.';

revoke execute on function agui_internal.fold_size(agui_internal.fold) from public;
