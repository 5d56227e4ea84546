-- Where runs report the tokens that they used, if not in the member usage.

create table agui_internal.usage_mapping (
    is_only boolean primary key default true check (is_only),
    path    text[] not null,
    names   jsonb not null,
    set_at  timestamptz not null default clock_timestamp()
);

comment on table agui_internal.usage_mapping is 'Where the tokens of a run are reported (agui.map_usage). One row, or none: in usage alone.';
comment on column agui_internal.usage_mapping.is_only is 'True: there is one row at most.';
comment on column agui_internal.usage_mapping.path is 'The members from RUN_FINISHED or RUN_ERROR to the report, an object or a list of objects.';
comment on column agui_internal.usage_mapping.names is 'The names of the members there, by those of AG-UI.';
comment on column agui_internal.usage_mapping.set_at is 'Since when.';

alter table agui_internal.usage_mapping
    alter column path set statistics 0,
    alter column names set statistics 0;
