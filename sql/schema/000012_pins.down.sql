do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui_internal.pinned_scope as pinned where pinned.bucket is not null) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'scopes are pinned to buckets of the cluster, and this database would look for their threads elsewhere: unpin them ("pgagui cluster unpin"), or set agui.allow_removal = on';
    end if;
end
$$;

alter table agui_internal.bucket drop column has_pins;
drop table agui_internal.pinned_scope;
