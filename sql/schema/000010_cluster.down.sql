do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui_internal.node) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'this database is a node of a cluster, and would forget which threads are its own: to allow that, set agui.allow_removal = on';
    end if;
end
$$;

drop table agui_internal.moved_thread, agui_internal.bucket, agui_internal.node;
