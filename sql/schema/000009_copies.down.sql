do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on'
        and (exists (select from agui.erasure where thread_uid is not null) or exists (select from agui.webhook where old_secret is not null))
    then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'readers of changes could not recognize erased threads any more, and old secrets of webhooks would be lost: '
                'to allow that, set agui.allow_removal = on';
    end if;
end
$$;

alter table agui.webhook
    drop column old_secret,
    drop column old_secret_until,
    drop column sends_from;
alter table agui.erasure
    drop column thread_uid,
    drop column erased_in;
alter table agui.thread drop column thread_uid;
