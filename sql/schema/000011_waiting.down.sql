alter table agui.projected_interrupt drop column is_open;
