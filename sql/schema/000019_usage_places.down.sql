do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and (
        select count(*) > 1 or max(mapping.custom) <> '' from agui_internal.usage_mapping as mapping
    ) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'of the mappings of usage all but the newest one of ends of runs would be lost: to allow that, set agui.allow_removal = on';
    end if;
end
$$;

delete from agui_internal.usage_mapping as mapping
where mapping.custom <> '' or mapping.set_at < (select max(newest.set_at) from agui_internal.usage_mapping as newest where newest.custom = '');

alter table agui_internal.usage_mapping
    drop column custom,
    add column is_only boolean primary key default true check (is_only);

comment on table agui_internal.usage_mapping is 'Where the tokens of a run are reported (agui.map_usage). One row, or none: in usage alone.';
comment on column agui_internal.usage_mapping.is_only is 'True: there is one row at most.';
comment on column agui_internal.usage_mapping.path is 'The members from RUN_FINISHED or RUN_ERROR to the report, an object or a list of objects.';

delete from agui_internal.projection;
