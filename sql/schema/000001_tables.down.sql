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
