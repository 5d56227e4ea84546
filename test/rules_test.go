package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/protocol"
)

// A goldenRule is a rule of protocol/events.json with its case, of golden/rules.json.
type goldenRule struct {
	goldenCase
	Type  *protocol.Type
	Field *protocol.Field // nil: the rule is about the event as a whole
}

func goldenRules(t *testing.T) (rules []goldenRule) {
	t.Helper()
	cases := map[string]goldenCase{}
	for _, c := range goldenCases(t) {
		if name, ok := strings.CutPrefix(c.Name, "rules: "); ok {
			cases[name] = c
		}
	}
	types := protocol.Events().Types
	add := func(name string, of *protocol.Type, field *protocol.Field) {
		if c, ok := cases[name]; ok {
			rules = append(rules, goldenRule{c, of, field})
		} else {
			t.Errorf("golden/rules.json has no case %q, for the rule of protocol/events.json", name)
		}
		delete(cases, name)
	}
	for i := range types {
		if types[i].Effect != "" {
			add(types[i].Name, &types[i], nil)
		}
		for j := range types[i].Fields {
			if field := &types[i].Fields[j]; field.IsRead() {
				add(types[i].Name+": "+field.Name, &types[i], field)
			}
		}
	}
	for name := range cases {
		t.Errorf("golden/rules.json has a case %q, for which protocol/events.json has no rule", name)
	}
	return rules
}

var jsonOfKind = map[string]string{
	"string": `"x"`, "number": `1`, "object": `{"k":1}`, "array": `[]`, "boolean": `true`, "null": `null`, "absent": ``,
}

// Both reducers read each field as protocol/events.json says: they skip an event that has the field with a wrong type, or lacks
// it where it is required. A field that is null counts as absent. The rows themselves are golden cases: TestGoldenCases.
func TestRulesHoldFieldByField(t *testing.T) {
	t.Parallel()
	type variant struct {
		name   string
		stream []json.RawMessage
		inGo   meaning
	}
	var variants []variant
	for _, rule := range goldenRules(t) {
		if rule.Field == nil {
			continue
		}
		takes := rule.Field.Kinds()
		at := rule.ofItsType(t)
		skipped := foldInGo(t, slices.Delete(slices.Clone(rule.Events), at, at+1))
		inGo := map[string]meaning{}
		for _, kind := range slices.Sorted(maps.Keys(jsonOfKind)) {
			stream := slices.Clone(rule.Events)
			stream[at] = withField(t, stream[at], strings.Split(rule.Field.Name, "."), jsonOfKind[kind])
			name := fmt.Sprintf("%s: %s", rule.Name, kind)
			inGo[kind] = foldInGo(t, stream)
			variants = append(variants, variant{name, stream, inGo[kind]})

			isAbsent := kind == "absent" || kind == "null" && !rule.takesNull()
			isWrong := !isAbsent && takes != nil && !slices.Contains(takes, kind)
			if isAbsent && rule.Field.IsNeeded() || isWrong {
				if difference := differences(inGo[kind], skipped); difference != "" {
					t.Errorf("%s: Go does not skip the event: %s", name, difference)
				}
			}
		}
		if difference := differences(inGo["null"], inGo["absent"]); difference != "" && !rule.takesNull() {
			t.Errorf("%s: in Go, null is not as if absent: %s", rule.Name, difference)
		}
	}

	streams := make([][]json.RawMessage, len(variants))
	for i, v := range variants {
		streams[i] = v.stream
	}
	for i, inSQL := range (&reducers{pool: testdb.Pool(t)}).foldInSQL(t, streams) {
		if difference := differences(inSQL, variants[i].inGo); difference != "" {
			t.Errorf("%s: SQL against Go: %s", variants[i].name, difference)
		}
	}
}

// takesNull reports whether null is a value of the field: a state can be null.
func (r goldenRule) takesNull() bool { return r.Type.Does == "set state" && r.Field.Kinds() == nil }

// ofItsType returns the place of the last event that has the type of the rule.
func (r goldenRule) ofItsType(t *testing.T) int {
	t.Helper()
	for at, event := range slices.Backward(r.Events) {
		var typed struct{ Type string }
		must.Do(t, json.Unmarshal(event, &typed))
		if typed.Type == r.Type.Name {
			return at
		}
	}
	t.Fatalf("%s: no event of the stream has the type %s", r.Name, r.Type.Name)
	return -1
}

// withField returns an object in which the field at a path has another value; "" removes it.
func withField(t *testing.T, object json.RawMessage, path []string, value string) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	must.Do(t, json.Unmarshal(object, &members))
	switch {
	case len(path) > 1:
		members[path[0]] = withField(t, members[path[0]], path[1:], value)
	case value == "":
		delete(members, path[0])
	default:
		members[path[0]] = json.RawMessage(value)
	}
	changed := must.Have(json.Marshal(members))(t)
	return changed
}
