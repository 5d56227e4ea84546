drop table agui.snapshot, agui.message, agui.batch, agui.run, agui.thread;
