-- Runs report tokens in several places: at their ends, and in CUSTOM events.

alter table agui_internal.usage_mapping
    drop column is_only,
    add column custom text not null default '',
    add primary key (custom, path);

comment on table agui_internal.usage_mapping is 'Where the tokens of a run are reported (agui.map_usage), besides the places that agui_internal.usage_of_event knows.';
comment on column agui_internal.usage_mapping.custom is 'The name of the CUSTOM events that report; empty: RUN_FINISHED and RUN_ERROR do.';
comment on column agui_internal.usage_mapping.path is 'The members from the event to the report, an object or a list of objects.';

-- More places are known without a mapping: agui.project() reads all runs.
delete from agui_internal.projection;
