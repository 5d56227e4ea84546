do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui.agent_error) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'there are errors of agents, which would be lost: to allow that, set agui.allow_removal = on';
    end if;
end
$$;

drop table agui.agent_error;
