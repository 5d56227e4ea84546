do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on'
        and (exists (select from agui.hold) or exists (select from agui.retention))
    then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'there are holds or rules of retention, which would be lost: to allow that, set agui.allow_removal = on';
    end if;
end
$$;

drop table agui.hold, agui.retention;
