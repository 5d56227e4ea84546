// Prints the event types that the package @ag-ui/core at a path has, with their fields:
//
//   node core.mjs FOLDER
//
// Output: {TYPE: {FIELD: {kinds: [...], required, values}}}, as JSON.

import { pathToFileURL } from "node:url";

const { EventSchemas } = await import(pathToFileURL(`${process.argv[2]}/dist/schemas.mjs`).href);

const types = {};
for (const schema of EventSchemas._def.options) {
  const { type, ...fields } = shapeOf(schema);
  types[type._def.values[0]] = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, describe(field)]));
}
process.stdout.write(JSON.stringify(types));

function shapeOf(schema) {
  return schema.shape ?? shapeOf(schema._def.in ?? schema._def.innerType);
}

function describe(field) {
  const { type, innerType, in: inner, options, values, entries } = field._def;
  switch (type) {
    case "optional":
    case "default":
      return { ...describe(innerType), required: false };
    case "nullable":
      return describe(innerType);
    case "pipe":
      return describe(inner);
    case "union":
      return { kinds: [...new Set(options.flatMap((option) => describe(option).kinds))].sort(), required: true };
    case "enum":
      return { kinds: ["string"], values: Object.values(entries), required: true };
    case "literal":
      return { kinds: ["string"], values, required: true };
    default: {
      // A custom check does not say what it takes.
      const kind = type === "custom" || type === "record" ? "object" : type;
      return { kinds: [kind], required: true };
    }
  }
}
