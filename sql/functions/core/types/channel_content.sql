create type agui_internal.channel_content as (
    ordinality int,
    channel_no int,
    type       text,
    part_nos   int4range[],
    body       json,
    bytes      bytea
);

comment on type agui_internal.channel_content is
    'A value of a channel as tables hold it: in exactly one of the forms part_nos, body and bytes. '
    'ordinality is its place in the call.';
