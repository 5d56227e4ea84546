package jsontree

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/pgagui/pgagui/compaction/compactiontest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/rawjson"
)

var testLimits = Limits{DocumentBytes: 16 << 20, DocumentDepth: 1000, Operations: 10_000, CopiedBytes: 64 << 20, ShiftedItems: 100_000_000}

// patched applies a patch to a document; it returns the result, or "" when the patch fails.
func patched(t *testing.T, text, operations string) string {
	t.Helper()
	limits := testLimits
	measured := Document{owner: new(Owner), root: Raw(text), bytes: len(text), octets: sizeOf(Raw(text))}
	measured.Patch([]byte(operations), &limits)
	if _, octets := guarded.octetsAt(JSON(measured.root), 0); measured.octets != octets && operations[0] == '[' {
		t.Errorf("%s of %s: kept the size %d of %d", operations, text, measured.octets, octets)
	}
	d := NewDocument(new(Owner), Raw(text))
	ok := d.Patch([]byte(operations), &limits)
	result := string(JSON(d.root))
	if d.bytes < len(result) || result != string(JSON(measured.root)) {
		t.Errorf("%s of %s: counted %d bytes of %d; measured, it becomes %s", operations, text, d.bytes, len(result), JSON(measured.root))
	}
	if !ok {
		if !equal(Raw(result), Raw(text), sameNumberText) {
			t.Errorf("%s of %s: failed, but left %s", operations, text, result)
		}
		return ""
	}
	return result
}

// Numbers that jsonb cannot hold are only here compared as numbers.
var pastDoubles = compactiontest.PatchCase{
	Section: "6902 4.6", Document: `{"n":1e400}`, Patch: `[{"op":"test","path":"/n","value":10e399}]`, Want: `{"n":1e400}`,
}

func TestPatch(t *testing.T) {
	t.Parallel()
	for _, test := range append(compactiontest.PatchCases, pastDoubles) {
		t.Run(test.Document+test.Patch, func(t *testing.T) {
			t.Parallel()
			if got := patched(t, test.Document, test.Patch); got != test.Want {
				t.Errorf("RFC %s: got %q, want %q", test.Section, got, test.Want)
			}
		})
	}
}

func TestPatchedTreesStayBounded(t *testing.T) {
	t.Parallel()
	// Sixty doublings would be more than any memory.
	doubling := "[" + strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"","path":"/-"},`, 60), ",") + "]"
	if got := patched(t, `["`+strings.Repeat("x", 1<<20)+`"]`, doubling); got != "" {
		t.Error("a document of 2^80 bytes was made")
	}
	deep := strings.Repeat("[", testLimits.DocumentDepth-1) + strings.Repeat("]", testLimits.DocumentDepth-1)
	if got := patched(t, `{}`, `[{"op":"add","path":"/a","value":`+deep+`}]`); got == "" {
		t.Error("a value of the greatest depth was refused")
	}
	if got := patched(t, `{"a":`+deep+`}`, `[{"op":"add","path":"/b","value":{}},{"op":"move","from":"/a","path":"/b/a"}]`); got != "" {
		t.Error("a value went beyond the greatest depth")
	}
}

// Large objects are searched and changed in another way than small ones.
func TestPatchOfALargeObject(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	model := map[string]json.RawMessage{}
	d := NewDocument(new(Owner), Raw("{}"))
	limits := testLimits
	for step := range 5000 {
		key := fmt.Sprintf("k%d", random.IntN(100))
		var operations string
		_, exists := model[key]
		switch {
		case exists && random.IntN(2) == 0:
			operations = fmt.Sprintf(`[{"op":"remove","path":"/%s"}]`, key)
			delete(model, key)
		case random.IntN(5) == 0: // fails, and must leave no trace
			operations = fmt.Sprintf(`[{"op":"add","path":"/%s","value":0},{"op":"add","path":"/new","value":0},{"op":"remove","path":"/%s"},{"op":"remove","path":"/missing"}]`, key, key)
		default:
			operations = fmt.Sprintf(`[{"op":"add","path":"/%s","value":%d}]`, key, step)
			model[key] = json.RawMessage(fmt.Sprint(step))
		}
		before := string(JSON(d.root))
		if !d.Patch([]byte(operations), &limits) && string(JSON(d.root)) != before {
			t.Fatalf("%s failed but changed\n%s to\n%s", operations, before, JSON(d.root))
		}
	}
	want := must.Have(json.Marshal(model))(t)
	got := JSON(d.root)
	if !equal(Raw(got), Raw(want), sameNumberText) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if d.bytes != len(got) {
		t.Errorf("counted %d bytes of %d", d.bytes, len(got))
	}
}

// Another implementation judges random patches, where it follows the RFC.
func TestPatchAgreesWithAnotherImplementation(t *testing.T) {
	t.Parallel()
	judged := 0
	for seed := range uint64(300) {
		state := `{}`
		for _, event := range compactiontest.Stream(seed, compactiontest.Options{Wild: true, Events: 200}) {
			var fields struct {
				Snapshot json.RawMessage
				Delta    json.RawMessage
			}
			if json.Unmarshal(event, &fields) == nil && len(fields.Snapshot) > 0 && fields.Snapshot[0] == '{' {
				state = string(fields.Snapshot)
			}
			if len(fields.Delta) == 0 || fields.Delta[0] != '[' || !judgeable(fields.Delta) {
				continue
			}
			patch := must.Have(jsonpatch.DecodePatch(fields.Delta))(t)
			want, err := patch.Apply([]byte(state))
			got := patched(t, state, string(fields.Delta))
			if (err != nil) != (got == "") || err == nil && !equal(Raw(got), Raw(want), sameNumberValue) {
				t.Errorf("%s of %s\ngot  %s\nwant %s %v", fields.Delta, state, got, want, err)
			}
			judged++
		}
	}
	if judged < 1000 {
		t.Errorf("only %d patches were judged", judged)
	}
}

// judgeable reports whether the other implementation follows the RFC for a patch: not with tests of null, the whole document as a
// target, an empty key on the way, and an index with a leading zero.
func judgeable(operations []byte) bool {
	for operation := range rawjson.Elements(operations) {
		kind, _ := StringValue(Raw(rawjson.MemberOf(operation, "op")))
		path, _ := StringValue(Raw(rawjson.MemberOf(operation, "path")))
		from, _ := StringValue(Raw(rawjson.MemberOf(operation, "from")))
		if path == "" || path[0] != '/' || hasEmptyToken(path) || hasEmptyToken(from) || strings.Contains(path, "/01") || strings.Contains(path, "~2") {
			return false
		}
		switch kind {
		case "add", "replace":
			if rawjson.MemberOf(operation, "value") == nil {
				return false
			}
		case "remove":
		case "move", "copy":
			if from == "" || strings.HasPrefix(path, from) || strings.HasSuffix(from, "-") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func hasEmptyToken(path string) bool {
	return strings.Contains(path, "//") || strings.HasSuffix(path, "/")
}

func FuzzPatch(f *testing.F) {
	f.Add(`{"a":[1,{"b":2}]}`, `[{"op":"move","from":"/a/1/b","path":"/a/0"},{"op":"test","path":"/a","value":[2,1,{}]}]`)
	f.Add(`[1,2]`, `[{"op":"copy","from":"","path":"/-"},{"op":"remove","path":"/0"}]`)
	f.Add(`{"a":"x"}`, `{"op":"add","path":"/a~1","value":1e400}`)
	f.Fuzz(func(t *testing.T, text, operations string) {
		if !json.Valid([]byte(text)) || !json.Valid([]byte(operations)) {
			t.Skip()
		}
		trim := func(s string) string { return strings.Trim(s, " \t\r\n") }
		if got := patched(t, trim(text), trim(operations)); got != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s of %s gives %s", operations, text, got)
		}
	})
}
