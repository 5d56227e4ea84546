// JSON Patch (RFC 6902) with JSON Pointer (RFC 6901), strictly: written for judging, not for speed.

/**
 * The document after the patch; the given one stays as it was. Throws when any operation fails: a patch applies whole or not at all.
 * What the RFC leaves open, the removal of the whole document, gives null, as in the client.
 */
export function applyPatch(document, patch) {
  if (!Array.isArray(patch)) throw new Error("a patch is a list of operations");
  return patch.reduce(applyOperation, structuredClone(document));
}

function applyOperation(document, operation) {
  if (typeof operation !== "object" || operation === null) throw new Error("an operation is an object");
  const path = tokensOf(member(operation, "path"));
  switch (member(operation, "op")) {
    case "add":
      return add(document, path, structuredClone(member(operation, "value")));
    case "remove":
      return remove(document, path);
    case "replace":
      return replace(document, path, structuredClone(member(operation, "value")));
    case "move":
      return move(document, tokensOf(member(operation, "from")), path);
    case "copy":
      return add(document, path, structuredClone(valueAt(document, tokensOf(member(operation, "from")))));
    case "test":
      if (!equal(valueAt(document, path), member(operation, "value"))) throw new Error("the test failed");
      return document;
    default:
      throw new Error(`no operation ${operation.op}`);
  }
}

function member(operation, name) {
  if (!Object.hasOwn(operation, name)) throw new Error(`the operation has no ${name}`);
  return operation[name];
}

function tokensOf(pointer) {
  if (typeof pointer !== "string") throw new Error("a pointer is a string");
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) throw new Error(`no pointer: ${pointer}`);
  return pointer.slice(1).split("/").map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

const valueAt = (document, tokens) => tokens.reduce(child, document);

function child(parent, token) {
  if (Array.isArray(parent)) return parent[indexIn(parent, token, parent.length - 1)];
  if (typeof parent !== "object" || parent === null || !Object.hasOwn(parent, token)) throw new Error(`nothing at ${token}`);
  return parent[token];
}

function indexIn(list, token, last) {
  if (!/^(0|[1-9][0-9]*)$/.test(token) || Number(token) > last) throw new Error(`no index ${token} in a list of ${list.length}`);
  return Number(token);
}

function add(document, tokens, value) {
  if (tokens.length === 0) return value;
  const { parent, token } = parentOf(document, tokens);
  if (Array.isArray(parent)) parent.splice(token === "-" ? parent.length : indexIn(parent, token, parent.length), 0, value);
  else if (typeof parent === "object" && parent !== null) setMember(parent, token, value);
  else throw new Error(`nothing can be added below a scalar at ${token}`);
  return document;
}

function remove(document, tokens) {
  if (tokens.length === 0) return null;
  const { parent, token } = parentOf(document, tokens);
  child(parent, token);
  if (Array.isArray(parent)) parent.splice(Number(token), 1);
  else delete parent[token];
  return document;
}

function replace(document, tokens, value) {
  if (tokens.length === 0) return value;
  const { parent, token } = parentOf(document, tokens);
  child(parent, token);
  if (Array.isArray(parent)) parent[Number(token)] = value;
  else setMember(parent, token, value);
  return document;
}

function move(document, from, path) {
  if (from.length < path.length && from.every((token, depth) => token === path[depth])) {
    throw new Error("a value cannot move into itself");
  }
  const value = valueAt(document, from);
  return add(remove(document, from), path, value);
}

const parentOf = (document, tokens) => ({ parent: valueAt(document, tokens.slice(0, -1)), token: tokens.at(-1) });

// Defined, not assigned: an assignment to __proto__ would set the prototype and make no member.
function setMember(object, key, value) {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

function equal(left, right) {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && equal(left[key], right[key]));
}
