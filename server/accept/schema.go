package accept

import (
	"bytes"
	"math"
	"strconv"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file says which events the schemas of the clients refuse. A client parses each event before anything else; what its schema
// refuses ends the run. The schemas of both differ: 1.0.0 takes what is new in protocol 1.0, and looks at more of what it takes.

// Clients are versions of the official client. The zero value means all.
type Clients uint8

const (
	// Client0 is @ag-ui/client 0.0.59.
	Client0 Clients = 1 << iota
	// Client1 is @ag-ui/client 1.0.0. A client of protocol 1.0 or newer names it in its input (protocolVersion).
	Client1

	allClients = Client0 | Client1
)

// A check returns the clients that refuse a value.
type check func(value []byte) Clients

// A rule is what the schemas say about a member of an object.
type rule struct {
	name  string
	check check
	need  Clients // the clients that refuse an object without it
}

// An eventRule is a rule for a member of an event.
type eventRule struct {
	field    field
	check    check
	need     Clients
	nullable bool // null counts as absent for both clients
}

// refusals returns the clients that refuse the event because of a member that it needs or that has the wrong type, and those members
// that the event does not need and that are null, or a time that is no integer. Without these it means the same to the reducers
// of pgagui, and a client takes it.
func (e *event) refusals(rules []eventRule, clients Clients) (refuse Clients, wrong, spare []field) {
	for i := range rules {
		r := &rules[i]
		value := e.values[r.field]
		switch {
		case value == nil:
			refuse |= r.need
			if r.need&clients != 0 {
				wrong = append(wrong, r.field)
			}
		case value[0] == 'n' && r.nullable:
		default:
			by := r.check(value)
			switch {
			case by&clients == 0:
			case r.need == 0 && (value[0] == 'n' || r.field == fieldTimestamp):
				spare = append(spare, r.field)
			default:
				refuse |= by
				wrong = append(wrong, r.field)
			}
		}
	}
	return refuse & clients, wrong, spare
}

// --- values ---

func refusedUnless(ok bool) Clients {
	if ok {
		return 0
	}
	return allClients
}

func isAny([]byte) Clients           { return 0 }
func isString(value []byte) Clients  { return refusedUnless(value[0] == '"') }
func isObject(value []byte) Clients  { return refusedUnless(value[0] == '{') }
func isBoolean(value []byte) Clients { return refusedUnless(value[0] == 't' || value[0] == 'f') }
func isNoNull(value []byte) Clients  { return Client1 & refusedUnless(value[0] != 'n') }

// isNoNullTag: the schemas of 0.0.59 have no agent in such an event, but its verifier refuses null.
func isNoNullTag(value []byte) Clients { return Client0 & refusedUnless(value[0] != 'n') }

// isTokenCount: 0.0.59 takes any number that is whole.
func isTokenCount(value []byte) Clients {
	switch number, ok := numberOf(value); {
	case !ok || number != math.Trunc(number) || number < 0 || math.IsInf(number, 0):
		return allClients
	default:
		return Client1 & refusedUnless(number <= maxSafe)
	}
}

// isTimestamp: 0.0.59 takes any number.
func isTimestamp(value []byte) Clients {
	number, ok := numberOf(value)
	if !ok {
		return allClients
	}
	return Client1 & refusedUnless(number == math.Trunc(number) && math.Abs(number) <= maxSafe)
}

// maxSafe is the greatest integer up to which JavaScript holds all.
const maxSafe = 1<<53 - 1

// numberOf reads a number as JavaScript does.
func numberOf(value []byte) (float64, bool) {
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	number, _ := strconv.ParseFloat(rawjson.String(value), 64) // infinite if it is too large
	return number, true
}

// only is a check that one client makes.
func only(client Clients, check check) check {
	return func(value []byte) Clients { return client & check(value) }
}

func oneOf(words ...string) check {
	return func(value []byte) Clients {
		for _, word := range words {
			if value[0] == '"' && rawjson.SameKey(value[1:len(value)-1], word) {
				return 0
			}
		}
		return allClients
	}
}

func arrayOf(check check) check {
	return func(value []byte) (refuse Clients) {
		if value[0] != '[' {
			return allClients
		}
		for element := range rawjson.Elements(value) {
			refuse |= check(element)
		}
		return refuse
	}
}

// object is a check of an object that has some members, and may have others.
func object(rules ...rule) check {
	return func(value []byte) (refuse Clients) {
		if value[0] != '{' {
			return allClients
		}
		members := make([][]byte, len(rules)) // of duplicate keys the last counts
		for key, value := range rawjson.Members(value) {
			if bytes.IndexByte(key, '\\') >= 0 {
				key = rawjson.Decode(nil, key)
			}
			for i := range rules {
				if string(key) == rules[i].name {
					members[i] = value
				}
			}
		}
		for i, member := range members {
			if member == nil {
				refuse |= rules[i].need
			} else {
				refuse |= rules[i].check(member)
			}
		}
		return refuse
	}
}

// exactly is a check of an object that 0.0.59 refuses if it has other members.
func exactly(rules ...rule) check {
	inner := object(rules...)
	return func(value []byte) Clients {
		refuse := inner(value)
		if value[0] == '{' {
			for key := range rawjson.Members(value) {
				known := false
				for i := range rules {
					known = known || rawjson.SameKey(key, rules[i].name)
				}
				if !known {
					refuse |= Client0
				}
			}
		}
		return refuse
	}
}

// variants is a check of an object whose kind a member names. An unknown kind is refused by 0.0.59; 1.0.0 drops it.
func variants(tag string, kinds map[string]check) check {
	return func(value []byte) Clients {
		if value[0] != '{' {
			return allClients
		}
		if kind := rawjson.MemberOf(value, tag); kind != nil && kind[0] == '"' {
			if check := kinds[string(rawjson.Decode(nil, kind[1:len(kind)-1]))]; check != nil {
				return check(value)
			}
		}
		return Client0
	}
}

func must(name string, check check) rule { return rule{name, check, allClients} }
func may(name string, check check) rule  { return rule{name, check, 0} }

var (
	isUsage = arrayOf(object(
		may("provider", isString), may("model", isString), may("inputTokens", isTokenCount), may("outputTokens", isTokenCount),
		may("totalTokens", isTokenCount), may("reasoningTokens", isTokenCount), may("cachedInputTokens", isTokenCount),
		may("cacheWriteInputTokens", only(Client1, isTokenCount)),
	))

	isRunOutcome = variants("type", map[string]check{
		"success":   exactlyWith([]rule{must("type", isString)}, may("pendingToolCallIds", only(Client1, arrayOf(isString)))),
		"interrupt": exactly(must("type", isString), must("interrupts", atLeastOne(isInterrupt))),
		"cancelled": func([]byte) Clients { return Client0 },
	})
	isSubagentOutcome = variants("type", map[string]check{
		"success":   exactly(must("type", isString)),
		"suspended": exactly(must("type", isString), may("interruptIds", arrayOf(isString))),
	})
	isInterrupt = object(
		must("id", isString), must("reason", isString), may("message", isString), may("toolCallId", isString),
		may("responseSchema", isObject), may("expiresAt", isString), may("metadata", isObject), may("subagentRunId", isString),
	)

	pointer = func(value []byte) Clients { return Client1 & refusedUnless(isPointer(value)) }
	isPatch = func(value []byte) Clients {
		if value[0] != '[' {
			return allClients
		}
		return Client1&operations(value) | cycles(value)
	}
	cycles     = arrayOf(func(value []byte) Clients { return refusedUnless(!isCycle(value)) })
	operations = arrayOf(variants("op", map[string]check{
		"add":     object(must("path", pointer), must("value", isAny)),
		"remove":  object(must("path", pointer)),
		"replace": object(must("path", pointer), must("value", isAny)),
		"move":    object(must("from", pointer), must("path", pointer)),
		"copy":    object(must("from", pointer), must("path", pointer)),
		"test":    object(must("path", pointer), must("value", isAny)),
	}))

	// The sources of media parts.
	isSource = variants("type", map[string]check{
		"data": object(must("value", isString), must("mimeType", isString)),
		"url":  object(must("value", isString), may("mimeType", isString)),
		"file": func(value []byte) Clients {
			return Client0 | object(must("value", isString), may("provider", isString), may("mimeType", isString))(value)
		},
	})
	isText  = object(must("text", isString), may("id", only(Client1, isString)), may("metadata", isNoNull))
	isMedia = object(must("source", isSource), may("id", only(Client1, isString)))
	isPart  = variants("type", map[string]check{
		"text": isText, "image": isMedia, "audio": isMedia, "video": isMedia, "document": isMedia, "binary": isBinaryPart,
	})
	resultMedia  = object(must("source", isSource), may("id", isString), may("metadata", isNoNull))
	isResultPart = variants("type", map[string]check{
		"text": isText, "image": resultMedia, "audio": resultMedia, "video": resultMedia, "document": resultMedia,
	})
)

// exactlyWith is exactly with members that 1.0.0 alone knows.
func exactlyWith(rules []rule, newer ...rule) check {
	old, all := exactly(rules...), object(append(rules, newer...)...)
	return func(value []byte) Clients { return old(value) | all(value) }
}

func atLeastOne(check check) check {
	all := arrayOf(check)
	return func(value []byte) Clients {
		if value[0] == '[' && value[rawjson.SkipSpace(value, 1)] == ']' {
			return allClients
		}
		return all(value)
	}
}

// isPointer checks a JSON pointer (RFC 6901).
func isPointer(value []byte) bool {
	if value[0] != '"' {
		return false
	}
	text := rawjson.Decode(nil, value[1:len(value)-1])
	if len(text) > 0 && text[0] != '/' {
		return false
	}
	for i, c := range text {
		if c == '~' && (i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1') {
			return false
		}
	}
	return true
}

// isCycle reports whether an operation of a patch moves a value into itself. RFC 6902 forbids that, and the reducers of pgagui skip
// the patch. The clients' library does it; then the client cannot copy its state, and fails.
func isCycle(operation []byte) bool {
	if operation[0] != '{' || string(stringOf(rawjson.MemberOf(operation, "op"))) != "move" {
		return false
	}
	from, path := stringOf(rawjson.MemberOf(operation, "from")), stringOf(rawjson.MemberOf(operation, "path"))
	return from != nil && len(path) > len(from) && bytes.HasPrefix(path, from) && path[len(from)] == '/'
}

// isBinaryPart: a part of protocol 0.x, which 1.0.0 rewrites. 0.0.59 wants something in it.
func isBinaryPart(value []byte) Clients {
	refuse := object(
		must("mimeType", isString), may("id", isString), may("url", isString), may("data", isString), may("filename", isString),
	)(value)
	for _, name := range []string{"id", "url", "data"} {
		if member := rawjson.MemberOf(value, name); member != nil && len(member) > len(`""`) {
			return refuse
		}
	}
	return refuse | Client0
}

var (
	isMessages = arrayOf(isMessage)
	isResult   = content(isResultPart, Client0)
)

// content is a check of a string, or of a list of parts that some clients refuse.
func content(part check, refuse Clients) check {
	parts := arrayOf(part)
	return func(value []byte) Clients {
		switch value[0] {
		case '"':
			return 0
		case '[':
			return refuse | parts(value)
		default:
			return allClients
		}
	}
}

var isMessage = func() check {
	common := []rule{must("id", isString), may("subagentRunId", isString), may("encryptedValue", isString), may("metadata", isObject)}
	message := func(more ...rule) check { return object(append(more, common...)...) }
	isCall := object(
		must("id", isString), must("type", oneOf("function")), may("encryptedValue", isString), may("metadata", isObject),
		must("function", object(must("name", isString), must("arguments", isString))),
	)
	instructions := message(must("content", isString), may("name", isString))
	return variants("role", map[string]check{
		"developer": instructions,
		"system":    instructions,
		"assistant": message(may("content", isString), may("name", isString), may("toolCalls", arrayOf(isCall))),
		"user":      message(must("content", content(isPart, 0)), may("name", isString)),
		"tool":      message(must("content", content(isPart, Client0)), must("toolCallId", isString), may("error", isString)),
		"activity":  object(must("id", isString), may("subagentRunId", isString), may("metadata", isObject), must("activityType", isString), must("content", isObject)),
		"reasoning": message(must("content", isString)),
	})
}()

var isInput = object(
	must("threadId", isString), must("runId", isString), may("parentRunId", isString), may("protocolVersion", only(Client1, isString)),
	must("messages", arrayOf(isMessage)),
	rule{"tools", arrayOf(object(must("name", isString), must("description", isString), may("metadata", isObject))), Client0},
	rule{"context", arrayOf(object(must("description", isString), must("value", isString))), Client0},
	may("resume", arrayOf(object(must("interruptId", isString), must("status", oneOf("resolved", "cancelled")), may("metadata", isObject)))),
)
