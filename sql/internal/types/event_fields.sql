-- json_populate_recordset makes a row of these of each event in one pass over the text; a column that no event has costs next to nothing.
-- A new field of an event is added here.
create type agui_internal.event_fields as (
    type                text,
    "messageId"         json,
    "toolCallId"        json,
    delta               json,
    "subagentRunId"     json,
    metadata            json,
    role                json,
    name                json,
    "toolCallName"      json,
    "parentMessageId"   json,
    content             json,
    snapshot            json,
    patch               json,
    "activityType"      json,
    replace             json,
    input               json,
    outcome             json,
    messages            json,
    "entityId"          json,
    "encryptedValue"    json,
    subtype             json
);

comment on type agui_internal.event_fields is
    'The fields of an event (guarded JSON, agui_internal.json_guard) that SQL looks at. One that is null reads as absent. Strings are in their one '
    'usual spelling, whatever the event wrote: equal strings are equal texts.';
