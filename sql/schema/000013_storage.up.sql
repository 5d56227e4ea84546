-- Ids, names and hashes stay in their rows. A row of more than 2 KB first loses its other columns to the TOAST table, each with a row and
-- an index entry there, although the text that makes the row large is to stay (storage main).
alter table agui.batch alter column hash set storage main;
alter table agui.run_input alter column hash set storage main;
alter table agui.input_part alter column message_id set storage main;
alter table agui.session_state alter column key set storage main;
alter table agui.checkpoint
    alter column namespace set storage main,
    alter column checkpoint_id set storage main,
    alter column run_id set storage main,
    alter column metadata set storage main;
alter table agui.checkpoint_write
    alter column task_id set storage main,
    alter column task_path set storage main,
    alter column type set storage main;
alter table agui.channel_value
    alter column version set storage main,
    alter column type set storage main;

do $$
begin
    -- It never made smaller rows compress: PostgreSQL looks at none below 2 KB.
    if (select 'toast_tuple_target=256' = any (reloptions) from pg_class where oid = 'agui.input_part'::regclass) then
        alter table agui.input_part reset (toast_tuple_target);
    end if;
    -- What an agent said leaves its row when the client sends it back (agui_internal.store_input_parts). The next messages take the
    -- space only after a vacuum, as in agui.batch. An own setting stays.
    if not exists (
        select
        from pg_class
        cross join pg_options_to_table(reloptions) as own
        where oid = 'agui.message_version'::regclass and own.option_name = 'autovacuum_vacuum_scale_factor'
    ) then
        alter table agui.message_version set (autovacuum_vacuum_scale_factor = 0.02);
    end if;
end
$$;
