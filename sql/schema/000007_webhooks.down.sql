do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui.webhook) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'there are webhooks, which would be lost: to allow that, set agui.allow_removal = on';
    end if;
end
$$;

drop table agui_internal.webhook_request, agui_internal.webhook_position, agui.webhook;
