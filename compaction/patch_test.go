package compaction

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/pgagui/pgagui/compaction/compactiontest"
)

// patched applies a patch to a document; it returns the result, or "" when the patch fails.
func patched(t *testing.T, text, operations string) string {
	t.Helper()
	d := document{owner: new(owner), root: raw(text), bytes: len(text)}
	ok := d.patch([]byte(operations))
	result := string(written(d.root))
	if d.bytes < len(result) {
		t.Errorf("%s of %s: counted %d bytes of %d", operations, text, d.bytes, len(result))
	}
	if !ok {
		if !equal(raw(result), raw(text), sameNumberText) {
			t.Errorf("%s of %s: failed, but left %s", operations, text, result)
		}
		return ""
	}
	return result
}

func TestPatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ document, patch, want string }{
		// add
		{`{"a":1}`, `{"op":"add","path":"/b","value":2}`, `{"a":1,"b":2}`},
		{`{"a":1}`, `{"op":"add","path":"/a","value":{"b":[]}}`, `{"a":{"b":[]}}`},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/1","value":9}`, `{"a":[1,9,2]}`},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/2","value":9}`, `{"a":[1,2,9]}`},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/-","value":[3,4]}`, `{"a":[1,2,[3,4]]}`},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/3","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/01","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/+1","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/1e0","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/-1","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/99999999999999999999","value":9}`, ``},
		{`{"a":[1,2]}`, `{"op":"add","path":"/a/b","value":9}`, ``},
		{`{"a":1}`, `{"op":"add","path":"/a/b","value":9}`, ``},
		{`{"a":"x"}`, `{"op":"add","path":"/a/-","value":9}`, ``},
		{`{"a":1}`, `{"op":"add","path":"/b/c","value":9}`, ``},
		{`{"a":1}`, `{"op":"add","path":"","value":[1]}`, `[1]`},
		{`{"a":1}`, `{"op":"add","path":"/a"}`, ``},
		{`{"a":1}`, `{"op":"add","path":"/b","value":null}`, `{"a":1,"b":null}`},
		{`{"a":1}`, `{"op":"add","path":"/","value":2}`, `{"a":1,"":2}`},
		{`{"a":1}`, `{"op":"add","path":"/-","value":2}`, `{"a":1,"-":2}`},
		{`{"a":1}`, `{"op":"add","path":"/__proto__","value":2}`, `{"a":1,"__proto__":2}`},
		{`{"a":1}`, `{"op":"add","path":"b","value":2}`, ``},
		{`{"a":1}`, `{"op":"add","path":7,"value":2}`, ``},
		{`{"a":1}`, `{"op":"add","value":2}`, ``},
		{`{"a":1}`, `{"op":"add","path":"/b","value":2,"more":"ignored"}`, `{"a":1,"b":2}`},
		// pointers
		{`{"a/b":1,"m~n":2,"~1":3}`, `[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"},{"op":"replace","path":"/~01","value":4}]`, `{"~1":4}`},
		{`{"a":1}`, `{"op":"add","path":"/a~2","value":2}`, ``},
		{`{"a":1}`, `{"op":"add","path":"/a~","value":2}`, ``},
		{`{"a":1}`, `{"op":"remove","path":"/\u0061"}`, `{}`},
		{`{"\u0061":1}`, `{"op":"remove","path":"/a"}`, `{}`},
		{`{"\ud800":1}`, `{"op":"remove","path":"/\ud801"}`, ``},
		// remove, replace
		{`{"a":1,"b":2}`, `{"op":"remove","path":"/a"}`, `{"b":2}`},
		{`{"a":[1,2,3]}`, `{"op":"remove","path":"/a/1"}`, `{"a":[1,3]}`},
		{`{"a":[1]}`, `{"op":"remove","path":"/a/-"}`, ``},
		{`{"a":[1]}`, `{"op":"remove","path":"/a/1"}`, ``},
		{`{"a":1}`, `{"op":"remove","path":"/b"}`, ``},
		{`{"a":1}`, `{"op":"remove","path":""}`, `null`},
		{`{"a":1,"b":2}`, `{"op":"replace","path":"/a","value":{"x":1}}`, `{"a":{"x":1},"b":2}`},
		{`{"a":1}`, `{"op":"replace","path":"/b","value":1}`, ``},
		{`{"a":1}`, `{"op":"replace","path":"/a"}`, ``},
		{`{"a":[1]}`, `{"op":"replace","path":"/a/0","value":2}`, `{"a":[2]}`},
		{`{"a":[1]}`, `{"op":"replace","path":"/a/-","value":2}`, ``},
		{`[1]`, `{"op":"replace","path":"","value":7}`, `7`},
		{`7`, `{"op":"replace","path":"","value":8}`, `8`},
		{`7`, `{"op":"replace","path":"/a","value":8}`, ``},
		// move, copy
		{`{"a":{"x":1},"b":{}}`, `{"op":"move","from":"/a/x","path":"/b/y"}`, `{"a":{},"b":{"y":1}}`},
		{`{"a":[1,2,3]}`, `{"op":"move","from":"/a/0","path":"/a/2"}`, `{"a":[2,3,1]}`},
		{`{"a":[1,2,3]}`, `{"op":"move","from":"/a/0","path":"/a/3"}`, ``},
		{`{"a":[1,2,3]}`, `{"op":"move","from":"/a/0","path":"/a/-"}`, `{"a":[2,3,1]}`},
		{`{"a":{"b":1}}`, `{"op":"move","from":"/a","path":"/a/b"}`, ``},
		{`{"a":{"b":1}}`, `{"op":"move","from":"","path":"/a"}`, ``},
		{`{"a":{"b":1}}`, `{"op":"move","from":"","path":""}`, `{"a":{"b":1}}`},
		{`{"a":{"b":1}}`, `{"op":"move","from":"/a","path":"/a"}`, `{"a":{"b":1}}`},
		{`{"a":{"b":1}}`, `{"op":"move","from":"/a","path":""}`, `{"b":1}`},
		{`{"a":1,"ab":2}`, `{"op":"move","from":"/a","path":"/ab"}`, `{"ab":1}`},
		{`{"a":1}`, `{"op":"move","from":"/x","path":"/b"}`, ``},
		{`{"a":1}`, `{"op":"move","from":"/x","path":""}`, ``},
		{`{"a":1}`, `{"op":"move","path":"/b"}`, ``},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/a/d","value":2},{"op":"remove","path":"/c/b"}]`, `{"a":{"b":1,"d":2},"c":{}}`},
		{`{"a":1}`, `{"op":"copy","from":"","path":"/b"}`, `{"a":1,"b":{"a":1}}`},
		{`{"a":1}`, `{"op":"copy","from":"/x","path":""}`, ``},
		{`[[1]]`, `[{"op":"copy","from":"/0","path":"/-"},{"op":"add","path":"/1/-","value":2}]`, `[[1],[1,2]]`},
		// test
		{`{"n":1}`, `{"op":"test","path":"/n","value":1.0}`, `{"n":1}`},
		{`{"n":1e0}`, `{"op":"test","path":"/n","value":0.1e1}`, `{"n":1e0}`},
		{`{"n":100}`, `{"op":"test","path":"/n","value":1E+2}`, `{"n":100}`},
		{`{"n":-0.0}`, `{"op":"test","path":"/n","value":0e5}`, `{"n":-0.0}`},
		{`{"n":1e400}`, `{"op":"test","path":"/n","value":10e399}`, `{"n":1e400}`},
		{`{"n":1e400}`, `{"op":"test","path":"/n","value":1e401}`, ``},
		{`{"n":-1}`, `{"op":"test","path":"/n","value":1}`, ``},
		{`{"n":10}`, `{"op":"test","path":"/n","value":"10"}`, ``},
		{`{"n":"\u0061"}`, `{"op":"test","path":"/n","value":"a"}`, `{"n":"\u0061"}`},
		{`{"n":{"a":1,"b":[1,2]}}`, `{"op":"test","path":"/n","value":{"b": [1, 2.0], "a":1}}`, `{"n":{"a":1,"b":[1,2]}}`},
		{`{"n":{"a":1}}`, `{"op":"test","path":"/n","value":{"a":1,"b":1}}`, ``},
		{`{"n":[1,2]}`, `{"op":"test","path":"/n","value":[2,1]}`, ``},
		{`{"n":[1,2]}`, `{"op":"test","path":"/n","value":{"0":1,"1":2}}`, ``},
		{`{"n":null}`, `{"op":"test","path":"/n","value":null}`, `{"n":null}`},
		{`{"n":null}`, `{"op":"test","path":"/m","value":null}`, ``},
		{`{"n":null}`, `{"op":"test","path":"/n"}`, ``},
		{`{"n":null}`, `{"op":"test","path":"/n","value":false}`, ``},
		{`{"n":1}`, `{"op":"test","path":"","value":{"n":1}}`, `{"n":1}`},
		// the list
		{`{"a":1}`, `[]`, `{"a":1}`},
		{`{"a":1}`, `[{"op":"add","path":"/b","value":1},{"op":"test","path":"/a","value":2}]`, ``},
		{`{"a":[1,2,3],"b":{"x":1},"c":1}`, `[{"op":"remove","path":"/a/0"},{"op":"add","path":"/a/-","value":4},{"op":"replace","path":"/a/0","value":5},{"op":"remove","path":"/b"},{"op":"add","path":"/b","value":2},{"op":"add","path":"","value":3},{"op":"remove","path":"/x"}]`, ``},
		{`{"a":1}`, `{"op":"_get","path":"/a"}`, ``},
		{`{"a":1}`, `{"op":"ADD","path":"/a","value":1}`, ``},
		{`{"a":1}`, `{"path":"/a","value":1}`, ``},
		{`{"a":1}`, `[7]`, ``},
		{`{"a":1}`, `{"op":"add","op":"remove","path":"/x","path":"/a"}`, `{}`},
		{`{"a":1,"a":2}`, `{"op":"test","path":"/a","value":2}`, `{"a":2}`},
	} {
		patch := test.patch
		if patch[0] == '{' {
			patch = "[" + patch + "]"
		}
		t.Run(test.document+patch, func(t *testing.T) {
			t.Parallel()
			if got := patched(t, test.document, patch); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
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
	deep := strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)
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
	d := document{owner: new(owner), root: raw("{}"), bytes: 2}
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
		before := string(written(d.root))
		if !d.patch([]byte(operations)) && string(written(d.root)) != before {
			t.Fatalf("%s failed but changed\n%s to\n%s", operations, before, written(d.root))
		}
	}
	want, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	got := written(d.root)
	if !equal(raw(got), raw(want), sameNumberText) {
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
			patch, err := jsonpatch.DecodePatch(fields.Delta)
			if err != nil {
				t.Fatal(err)
			}
			want, err := patch.Apply([]byte(state))
			got := patched(t, state, string(fields.Delta))
			if (err != nil) != (got == "") || err == nil && !equal(raw(got), raw(want), sameNumberValue) {
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
	for operation := range elements(operations) {
		kind, _ := stringValue(raw(memberOf(operation, "op")))
		path, _ := stringValue(raw(memberOf(operation, "path")))
		from, _ := stringValue(raw(memberOf(operation, "from")))
		if path == "" || path[0] != '/' || hasEmptyToken(path) || hasEmptyToken(from) || strings.Contains(path, "/01") || strings.Contains(path, "~2") {
			return false
		}
		switch kind {
		case "add", "replace":
			if memberOf(operation, "value") == nil {
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
