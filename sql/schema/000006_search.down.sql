-- All of it can be made again.
drop table agui.message_text, agui_internal.search;
