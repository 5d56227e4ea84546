// Package compactiontest makes AG-UI event streams for tests: many different ones, the same for the same seed.
package compactiontest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Options say what a stream may hold.
type Options struct {
	// Events is about how many events the stream has; 0 means 60.
	Events int
	// Wild streams use the events in any order, with few ids for many things. Others are accepted by the verifier of the
	// official client: runs begin and end, and what is opened in them is closed.
	Wild bool
	// Broken streams are as those that the verifier accepts, but for the beginning and the end of their runs: those end in their
	// middle, go on after their end, start twice, or begin with other events.
	Broken bool
	// Chunks of a wild stream that continue nothing, or no single stream, are refused by the client; they need RefusedChunks.
	RefusedChunks bool
	// Proposals adds the spellings of the AG-UI proposals, the state that a run was started with, and messages without an id,
	// all of which the client does not read.
	Proposals bool
	// Field adds to wild streams what agents of frameworks send: questions, ends, lists and patches of their own kinds.
	Field bool
	// Malformed adds events that miss fields, have fields of the wrong type, are of an unknown type or are no objects.
	Malformed bool
	// Unicode adds zero bytes, lone surrogates, emoji cut in the middle, and characters written as escapes.
	Unicode bool
	// Numbers adds numbers that lose something as a float64: 1.0, 1e400, long ones.
	Numbers bool
}

// Stream returns a stream of events, the same for the same seed and options.
func Stream(seed uint64, options Options) []json.RawMessage {
	if options.Events == 0 {
		options.Events = 60
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), Options: options, lanes: map[string]stream{}}
	if options.Wild {
		g.wild()
	} else {
		g.valid()
	}
	return g.events
}

// Batch joins events into the JSON array that a store keeps.
func Batch(events []json.RawMessage) []byte {
	batch := []byte{'['}
	for i, event := range events {
		if i > 0 {
			batch = append(batch, ',')
		}
		batch = append(batch, event...)
	}
	return append(batch, ']')
}

type generator struct {
	*rand.Rand
	Options
	events []json.RawMessage
	lanes  map[string]stream // the streams of chunks that are open, by subagent
	fresh  int               // counts the ids of a valid stream
	ids    []string          // of a valid stream
	runs   int               // counts the runs of a valid stream
}

type stream struct{ kind, id string }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

// emit adds an event; the fields are pairs of a name and a JSON value, and a pair with an empty value is left out.
func (g *generator) emit(eventType string, fields ...string) {
	pairs := []string{g.key("type") + ":" + quoted(eventType)}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			pairs = append(pairs, g.key(fields[i])+":"+fields[i+1])
		}
	}
	if g.chance(10) {
		pairs = append(pairs, `"rawEvent":{"nested":[{"type":"NOT_THIS","delta":"\"}]"},null]}`)
	}
	if g.chance(5) {
		timestamp := `"timestamp":1714064100000`
		if g.Field {
			timestamp = pick(g, timestamp, `"timestamp":1714064100.25`, `"timestamp":12.5`) // in seconds, and of the clock of a process
		}
		pairs = append(pairs, timestamp)
	}
	if g.chance(3) {
		pairs = append(pairs, `"`+pick(g, "unknown", "vendor", "toString")+`":1`)
	}
	if g.chance(20) {
		g.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	}
	comma := ","
	if g.chance(10) {
		comma = " ,\n\t"
	}
	g.events = append(g.events, json.RawMessage("{"+strings.Join(pairs, comma)+"}"))
}

func (g *generator) key(name string) string {
	if g.Unicode && name != "" && g.chance(1) {
		return fmt.Sprintf(`"\u%04x%s"`, name[0], name[1:])
	}
	return quoted(name)
}

func quoted(s string) string { return `"` + s + `"` }

// --- values ---

func (g *generator) text() string {
	words := []string{"Hel", "lo", " world", "", `\n`, `\"quoted\"`, `\\`, "ü", "日本", "🎉", `\/`, "x"}
	if g.Unicode {
		words = append(words, `\ud83d`, `\ude00`, `\u0000`, `\u0041`, `\ud83d\ude00`, `\udc00\ud800`)
	}
	return quoted(pick(g, words...))
}

func (g *generator) number() string {
	if g.Numbers && g.chance(40) {
		return pick(g, "1.0", "1e0", "10e-1", "1e400", "123456789012345678901234567890", "0.10", "-0", "-0.0", "1E+2")
	}
	return pick(g, "0", "1", "2", "-3", "2.5", "1000000")
}

func (g *generator) value(depth int) string {
	switch n := g.IntN(9); {
	case n < 2:
		return g.text()
	case n < 4:
		return g.number()
	case n == 4:
		return pick(g, "true", "false", "null")
	case depth == 0:
		return pick(g, "{}", "[]", "1")
	case n < 7:
		return g.object(depth)
	default:
		return g.list(depth)
	}
}

func (g *generator) object(depth int) string {
	depth = max(0, depth-1)
	members := make([]string, 0, 4)
	for _, name := range []string{"a", "b", "c", "", "x/y", "m~n", "0", "-"} {
		if g.chance(25) || name == "a" && g.chance(60) {
			members = append(members, g.key(name)+":"+g.value(depth))
		}
	}
	if g.chance(70) {
		members = append(members, g.key("items")+":"+g.list(depth))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g *generator) list(depth int) string {
	items := make([]string, g.IntN(4))
	for i := range items {
		items[i] = g.value(max(0, depth-1))
	}
	return "[" + strings.Join(items, pick(g, ",", ", ")) + "]"
}

func (g *generator) metadata() string {
	if !g.chance(15) {
		return ""
	}
	members := make([]string, 0, 3)
	for _, name := range []string{"usage", "finish", "ag-ui", "k"} {
		if g.chance(40) {
			members = append(members, quoted(name)+":"+g.value(1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// patch makes a list of operations; about half of the lists succeed on the values that object makes.
func (g *generator) patch() string {
	var operations []string
	for range pick(g, 1, 1, 1, 2, 3) {
		operations = append(operations, g.operation())
	}
	if g.chance(15) {
		path, value := quoted("/"+pick(g, "a", "b", "c")), g.value(2)
		operations = append(operations, fmt.Sprintf(`{"op":"add","path":%s,"value":%s}`, path, value), fmt.Sprintf(`{"op":"test","path":%s,"value":%s}`, path, value))
	}
	return "[" + strings.Join(operations, ",") + "]"
}

func (g *generator) operation() string {
	path := g.pointer()
	switch g.IntN(12) {
	case 0, 1, 2, 3:
		return fmt.Sprintf(`{"op":"add","path":%s,"value":%s}`, path, g.value(2))
	case 4, 5:
		return fmt.Sprintf(`{"op":"replace","path":%s,"value":%s}`, path, g.value(2))
	case 6, 7:
		return fmt.Sprintf(`{"op":"remove","path":%s}`, path)
	case 8, 9:
		return fmt.Sprintf(`{"value":0,"op":"move","from":%s,"path":%s}`, g.pointer(), path)
	case 10:
		return fmt.Sprintf(`{"op":"copy","from":%s,"path":%s}`, g.pointer(), path)
	default:
		if g.chance(10) {
			return pick(g, `{"op":"_get","path":"/a"}`, `{"op":"add","path":"/a"}`, `{"path":"/a"}`, `{"op":"remove"}`, `{"op":"move","path":"/a"}`,
				`{"op":"remove","path":"a"}`, `{"op":"add","path":"/items/01","value":1}`, `{"op":"add","path":"/a~2","value":1}`, `{"op":"test","path":"/missing","value":null}`)
		}
		return fmt.Sprintf(`{"op":"test","path":%s,"value":%s}`, path, g.value(1))
	}
}

func (g *generator) pointer() string {
	var path strings.Builder
	for range pick(g, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3) {
		path.WriteString("/" + pick(g, "a", "a", "a", "b", "c", "items", "items", "items", "items", "0", "0", "1", "-", "", "x~1y", "m~0n"))
	}
	return quoted(path.String())
}

// --- messages for inputs and snapshots ---

func (g *generator) messages(ids, calls []string) string {
	var list []string
	for _, id := range ids {
		if g.chance(40) {
			list = append(list, g.message(id, calls))
		}
	}
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return "[" + strings.Join(list, ",") + "]"
}

func (g *generator) message(id string, calls []string) string {
	common := `"id":` + quoted(id)
	if g.chance(20) {
		common += `,"subagentRunId":` + g.orNull(quoted("s1"))
	}
	if g.chance(15) {
		common += `,"metadata":` + g.object(1)
	}
	if g.chance(15) {
		common += `,"vendor":{"kept": 1.50}`
	}
	switch g.IntN(7) {
	case 0, 1:
		return fmt.Sprintf(`{%s,"role":"user","content":%s}`, common, pick(g, g.text(), `[{"type":"text","text":"part"}]`))
	case 2:
		return fmt.Sprintf(`{%s,"role":"assistant","content":%s}`, common, g.text())
	case 3:
		var list []string
		for _, call := range calls {
			if g.chance(40) {
				list = append(list, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":"f","arguments":%s}}`, quoted(call), g.text()))
			}
		}
		return fmt.Sprintf(`{%s,"role":%s,"toolCalls":[%s]}`, common, quoted(pick(g, "assistant", "assistant", "assistant", "user")), strings.Join(list, ","))
	case 4:
		return fmt.Sprintf(`{%s,"role":"tool","toolCallId":%s,"content":%s}`, common, quoted(pick(g, calls...)), g.text())
	case 5:
		return fmt.Sprintf(`{%s,"role":"reasoning","content":%s}`, common, g.text())
	default:
		return fmt.Sprintf(`{%s,"role":"activity","activityType":%s,"content":%s}`, common, quoted(pick(g, "PLAN", "SEARCH")), g.object(2))
	}
}

func (g *generator) orNull(value string) string {
	if g.Wild && g.chance(30) {
		return "null"
	}
	return value
}

func (g *generator) interrupts() string {
	list := make([]string, 1+g.IntN(2))
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"i%d","reason":"confirm","message":%s%s}`, i, g.text(), pick(g, "", `,"subagentRunId":`+g.orNull(`"s1"`)))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (g *generator) authority() string {
	if !g.chance(25) {
		return ""
	}
	return pick(g, `{}`, `{"@ag-ui/client":{}}`, `{"@ag-ui/client":{"authoritativeActivityTypes":null}}`, `{"@ag-ui/client":{"authoritativeActivityTypes":["PLAN"]}}`,
		`{"@ag-ui/client":{"authoritativeActivityTypes":[]}}`, `{"@ag-ui/client":{"authoritativeActivityTypes":["PLAN",1]}}`, `{"@ag-ui/client":7}`)
}
