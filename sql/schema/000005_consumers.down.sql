do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui.consumer) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'there are consumers, whose places would be lost: to allow that, set agui.allow_removal = on';
    end if;
end
$$;

drop table agui_internal.consumer_thread, agui.consumer;
