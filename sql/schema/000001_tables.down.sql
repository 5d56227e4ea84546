-- Names are not resolved in the schemas of the caller's search_path, where others may create
-- objects. The end of the file restores the path.
do $$
begin
    perform pg_catalog.set_config('agui.search_path', pg_catalog.current_setting('search_path'), false);
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false);
end
$$;

do $$
begin
    if coalesce(current_setting('agui.allow_removal', true), '') <> 'on' and exists (select from agui.thread) then
        raise exception using
            errcode = 'object_not_in_prerequisite_state',
            message = 'the schema agui holds conversations, which would be deleted: to allow that, set agui.allow_removal = on',
            hint = 'Export what you want to keep. The setting is one of the session: in a connection string, options=-cagui.allow_removal=on.';
    end if;
end
$$;

-- Record of the install, written by pgagui. Do not edit.
drop function agui_internal.installed();
-- End of the record.

drop table agui_internal.job_note, agui_internal.claim, agui_internal.tenant, agui_internal.installed_object, agui_internal.uptime, agui_internal.setting, agui_internal.chained_scope, agui_internal.erasure_salt, agui.erasure, agui.checkpoint_write, agui.channel_value, agui.channel_part, agui.channel, agui.checkpoint, agui.session_state, agui.session_key, agui.snapshot, agui.message_version, agui.thread_activity, agui.input_part, agui.run_input, agui.batch, agui.run, agui.thread;

-- A schema goes with the last thing in it: migration tools may keep their version table there.
do $$
begin
    drop schema agui_internal;
exception
    when dependent_objects_still_exist or insufficient_privilege then
        null;
end
$$;

do $$
begin
    drop schema agui;
exception
    when dependent_objects_still_exist or insufficient_privilege then
        null;
end
$$;

do $$
begin
    perform pg_catalog.set_config('search_path', pg_catalog.current_setting('agui.search_path'), false);
end
$$;
