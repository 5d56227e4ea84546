drop table agui_internal.usage_mapping;
