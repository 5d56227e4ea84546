do $$
begin
    if (select 'autovacuum_vacuum_scale_factor=0.02' = any (reloptions) from pg_class where oid = 'agui.message_version'::regclass) then
        alter table agui.message_version reset (autovacuum_vacuum_scale_factor);
    end if;
end
$$;

alter table agui.input_part set (toast_tuple_target = 256);

alter table agui.channel_value
    alter column version set storage extended,
    alter column type set storage extended;
alter table agui.checkpoint_write
    alter column task_id set storage extended,
    alter column task_path set storage extended,
    alter column type set storage extended;
alter table agui.checkpoint
    alter column namespace set storage extended,
    alter column checkpoint_id set storage extended,
    alter column run_id set storage extended,
    alter column metadata set storage extended;
alter table agui.session_state alter column key set storage extended;
alter table agui.input_part alter column message_id set storage extended;
alter table agui.run_input alter column hash set storage extended;
alter table agui.batch alter column hash set storage extended;
