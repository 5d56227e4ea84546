create type agui_internal.tool_result as (
    at    timestamptz,
    bytes bigint,
    error text
);

comment on type agui_internal.tool_result is
    'A result of a tool call: when it came, the size of its content in bytes, and what failed (null: nothing).';
