drop index agui.interrupt_open_of_thread;
