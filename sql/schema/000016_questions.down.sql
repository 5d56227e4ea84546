alter table agui.run drop column asks;
