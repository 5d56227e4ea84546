package test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/testdb"
)

var updateRules = flag.Bool("update-rules", false, "write the table of docs/reducer.md anew")

// goldenRules returns the table of the reducer's rules: the golden cases of golden/rules.json.
func goldenRules(t *testing.T) []goldenCase {
	t.Helper()
	rules := slices.DeleteFunc(goldenCases(t), func(c goldenCase) bool { return c.Type == "" })
	if len(rules) == 0 {
		t.Fatal("golden/rules.json has no rules")
	}
	return rules
}

var jsonOfKind = map[string]string{
	"string": `"x"`, "number": `1`, "object": `{"k":1}`, "array": `[]`, "boolean": `true`, "null": `null`, "absent": ``,
}

// Both reducers read each field of the table as its row says: they skip an event that has the field with a wrong type, or lacks
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
		if rule.Field == "" {
			continue
		}
		at := rule.ofItsType(t)
		skipped := foldInGo(t, slices.Delete(slices.Clone(rule.Events), at, at+1))
		inGo := map[string]meaning{}
		for _, kind := range slices.Sorted(maps.Keys(jsonOfKind)) {
			stream := slices.Clone(rule.Events)
			stream[at] = withField(t, stream[at], strings.Split(rule.Field, "."), jsonOfKind[kind])
			name := fmt.Sprintf("%s: %s", rule.Name, kind)
			inGo[kind] = foldInGo(t, stream)
			variants = append(variants, variant{name, stream, inGo[kind]})

			isAbsent := kind == "absent" || kind == "null" && !rule.takesNull()
			isWrong := !isAbsent && len(rule.Takes) > 0 && !slices.Contains(rule.Takes, kind)
			if isAbsent && rule.Required || isWrong {
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
func (c goldenCase) takesNull() bool { return c.Type == "STATE_SNAPSHOT" && len(c.Takes) == 0 }

// ofItsType returns the place of the last event that has the type of the rule.
func (c goldenCase) ofItsType(t *testing.T) int {
	t.Helper()
	for at, event := range slices.Backward(c.Events) {
		var typed struct{ Type string }
		if err := json.Unmarshal(event, &typed); err != nil {
			t.Fatal(err)
		}
		if typed.Type == c.Type {
			return at
		}
	}
	t.Fatalf("%s: no event of the stream has the type %s", c.Name, c.Type)
	return -1
}

// withField returns an object in which the field at a path has another value; "" removes it.
func withField(t *testing.T, object json.RawMessage, path []string, value string) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	switch {
	case len(path) > 1:
		members[path[0]] = withField(t, members[path[0]], path[1:], value)
	case value == "":
		delete(members, path[0])
	default:
		members[path[0]] = json.RawMessage(value)
	}
	changed, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// The reducer in SQL names no event type that the table does not have. For the one in Go, see the tests of package compaction.
func TestRulesHaveTheEventTypesOfSQL(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../sql/internal/fold/fold_steps.sql")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, rule := range goldenRules(t) {
		known[rule.Type] = true
	}
	found := regexp.MustCompile(`'([A-Z]+(?:_[A-Z]+)*)'`).FindAllSubmatch(source, -1)
	for _, name := range found {
		if !known[string(name[1])] {
			t.Errorf("fold_steps.sql reads the event type %s, which has no row in golden/rules.json", name[1])
		}
	}
	if len(found) < 30 {
		t.Errorf("found only %d event types in fold_steps.sql", len(found))
	}
}

// docs/reducer.md has the table as golden/rules.json has it, and the limits that it names are settings.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	settings, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| Event | Field | JSON type | What it does |\n|---|---|---|---|\n")
	previous := ""
	for _, rule := range goldenRules(t) {
		event, field, kinds, text := "", "", strings.Join(rule.Takes, ", "), rule.Rule
		if rule.Type != previous {
			previous, event = rule.Type, "`"+rule.Type+"`"
			if rule.Type == "(any other)" {
				event = "any other"
			}
		}
		if rule.Field != "" {
			field = "`" + rule.Field + "`"
			if kinds == "" {
				kinds = "any"
			}
		}
		if rule.Required {
			kinds += ", required"
		}
		for i, limit := range rule.Limits {
			if !strings.Contains(string(settings), "| `"+limit+"` |") {
				t.Errorf("%s: docs/settings.md has no setting %s", rule.Name, limit)
			}
			if i == 0 {
				text += " Limits:"
			} else {
				text += ","
			}
			text += " `" + limit + "`"
		}
		if len(rule.Limits) > 0 {
			text += "."
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", event, field, kinds, strings.ReplaceAll(text, "|", `\|`))
	}

	const file, begin, end = "../docs/reducer.md", "<!-- rules -->\n\n", "\n<!-- end of the rules -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	written, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s has no place for the table, between %q and %q", file, begin, end)
	}
	if written == table.String() {
		return
	}
	if !*updateRules {
		t.Fatalf("%s differs from test/golden/rules.json: go test ./test -run RulesAreDocumented -update-rules writes its table anew", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
