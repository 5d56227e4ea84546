drop table agui_internal.older_rules;
alter table agui.snapshot drop column rules;
