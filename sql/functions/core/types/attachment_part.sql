create type agui.attachment_part as (
    attachment agui.attachment,
    next_part  int
);

comment on type agui.attachment_part is
    'The result of agui.attach_part. attachment: that of agui.attach, with the events of one part. '
    'next_part: the number of the part behind it; null: there is none.';
