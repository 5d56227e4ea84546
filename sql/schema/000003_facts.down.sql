drop table agui_internal.projection, agui.projected_usage, agui.projected_interrupt, agui.projected_call, agui.projected_run;
