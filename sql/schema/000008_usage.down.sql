do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui_internal.usage_mapping) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'there is a mapping of usage, which would be lost: to allow that, set agui.allow_removal = on';
    end if;
    -- Facts that were read with it are computed again.
    if exists (select from agui_internal.usage_mapping) then
        delete from agui_internal.projection;
    end if;
end
$$;

drop table agui_internal.usage_mapping;
