-- A run may ask in one call, and come to the RUN_FINISHED that makes an interrupt of it in a later one.

-- Without a default, so that the table is not rewritten.
alter table agui.run add column asks boolean;

comment on column agui.run.asks is
    'Whether the run has asked (a CUSTOM event, agui_internal.question_name) since it began or last ended: a RUN_FINISHED '
    'without an outcome makes an interrupt of it; null: no.';
