package compaction

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// readBeyondTheShape are the fields that a rule reads with a function of its own: their types depend on another field.
var readBeyondTheShape = map[string]bool{
	"STATE_SNAPSHOT: snapshot": true, "STATE_SNAPSHOT: state": true, "STATE_DELTA: patch": true, "RUN_FINISHED: outcome": true,
	"ACTIVITY_DELTA: patch": true, // any JSON value
}

// The table of the rules (test/golden/rules.json) has each event type and each field that the reducer reads, with the JSON types
// that it accepts.
func TestRulesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../test/golden/rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Type, Field string
		Takes       []string
		Required    bool
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{}
	for _, row := range rows {
		inTable[row.Type] = true
		inTable[row.Type+": "+row.Field] = true
		r, isKnown := rules[row.Type]
		if !isKnown || row.Field == "" || readBeyondTheShape[row.Type+": "+row.Field] || strings.Contains(row.Field, ".") {
			continue
		}
		var accepted []string
		isRequired := false
		for _, s := range r.shape {
			if s.field == fieldNamed([]byte(row.Field)) {
				accepted, isRequired = typesOf(s.kinds), s.required
			}
		}
		if !slices.Equal(accepted, slices.Sorted(slices.Values(row.Takes))) || isRequired != row.Required {
			t.Errorf("%s: %s takes %q, required %t, in the reducer, but %q, required %t, in test/golden/rules.json",
				row.Type, row.Field, accepted, isRequired, row.Takes, row.Required)
		}
	}
	for eventType, r := range rules {
		if !inTable[eventType] {
			t.Errorf("%s has no row in test/golden/rules.json", eventType)
		}
		for _, s := range r.shape {
			if name := nameOf(s.field); !inTable[eventType+": "+name] {
				t.Errorf("%s: %s has no row in test/golden/rules.json", eventType, name)
			}
		}
	}
	for name := range readBeyondTheShape {
		if !inTable[name] {
			t.Errorf("%s has no row in test/golden/rules.json", name)
		}
	}
}

func typesOf(k kinds) (names []string) {
	for kind, name := range map[kinds]string{isString: "string", isObject: "object", isArray: "array", isBoolean: "boolean", isNumeric: "number"} {
		if k&kind != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// nameOf is the opposite of fieldNamed.
func nameOf(f field) string {
	for _, name := range []string{
		"type", "messageId", "role", "name", "delta", "toolCallId", "toolCallName", "parentMessageId", "content", "subagentRunId", "metadata",
		"snapshot", "state", "patch", "messages", "activityType", "replace", "input", "outcome", "subtype", "entityId", "encryptedValue",
		"rawEvent", "timestamp",
	} {
		if fieldNamed([]byte(name)) == f {
			return name
		}
	}
	return ""
}
