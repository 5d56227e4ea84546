package jsontree

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/pgagui/pgagui/internal/must"
)

func TestCreatePatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, want string }{
		{`{"a":1}`, ` {"a" : 1} `, `[]`},
		{`{"a":1,"b":2}`, `{"b":2,"c":null}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/c","value":null}]`},
		{`{"a":{"b/c":1}}`, `{"a":{"b/c":2,"~":[]}}`, `[{"op":"replace","path":"/a/b~1c","value":2},{"op":"add","path":"/a/~0","value":[]}]`},
		{`{"l":[1,2,3,4]}`, `{"l":[1,9,2,3,4]}`, `[{"op":"add","path":"/l/1","value":9}]`},
		{`{"l":[1,2,3,4]}`, `{"l":[1,4]}`, `[{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"}]`},
		{`{"l":[{"a":1},{"b":1}]}`, `{"l":[{"a":1},{"b":2}]}`, `[{"op":"replace","path":"/l/1/b","value":2}]`},
		{`{"l":[1]}`, `{"l":{"0":1}}`, `[{"op":"replace","path":"/l","value":{"0":1}}]`},
		{`null`, `{}`, `[{"op":"replace","path":"","value":{}}]`},
		{`{"n":1}`, `{"n":1.0}`, `[{"op":"replace","path":"/n","value":1.0}]`},
		{`{"s":"a"}`, `{"s":"\u0061"}`, `[]`},
	} {
		got, _, err := CreatePatch([]byte(test.from), []byte(test.to))
		if err != nil || string(got) != test.want {
			t.Errorf("from %s to %s: %s, error %v, want %s", test.from, test.to, got, err, test.want)
		}
	}
	for _, wrong := range []string{``, `{`, `{} {}`} {
		if _, _, err := CreatePatch([]byte(wrong), []byte(`{}`)); err == nil {
			t.Errorf("%q was compared", wrong)
		}
	}
}

// The patch makes the one of the other, with our own implementation and with another.
func TestCreatedPatchesGiveTheTarget(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		from := randomDocument(random, 4)
		to := from
		if random.IntN(4) == 0 {
			to = randomDocument(random, 4)
		}
		for range random.IntN(4) {
			to = changed(random, to)
		}
		before, after := asJSON(t, from), asJSON(t, to)
		operations, _, err := CreatePatch(before, after)
		must.Do(t, err)
		if (string(operations) == "[]") != Equal(before, after) {
			t.Errorf("from %s to %s: %s", before, after, operations)
		}
		if got := patched(t, string(before), string(operations)); !Equal([]byte(got), after) {
			t.Errorf("%s of %s gives %s, want %s", operations, before, got, after)
		}
		if strings.Contains(string(operations), `"path":""`) {
			continue // the other does not take the whole document
		}
		patch := must.Have(jsonpatch.DecodePatch(operations))(t)
		if got, err := patch.Apply(before); err != nil || !Equal(got, after) {
			t.Errorf("%s of %s gives %s with the other implementation, error %v, want %s", operations, before, got, err, after)
		}
	}
}

func asJSON(t *testing.T, document any) []byte {
	t.Helper()
	text := must.Have(json.Marshal(document))(t)
	return text
}

// randomDocument is an object.
func randomDocument(random *rand.Rand, depth int) any {
	object := map[string]any{}
	for range random.IntN(5) {
		object[randomKey(random)] = randomValue(random, depth-1)
	}
	return object
}

func randomKey(random *rand.Rand) string {
	return []string{"a", "b", "c/d", "e~f", "ü", "0", "1", "-"}[random.IntN(8)]
}

func randomValue(random *rand.Rand, depth int) any {
	switch kind := random.IntN(6); {
	case kind == 0 && depth > 0:
		return randomDocument(random, depth)
	case kind <= 2 && depth > 0:
		array := []any{}
		for range random.IntN(6) {
			array = append(array, randomValue(random, depth-1))
		}
		return array
	case kind == 3:
		return nil
	case kind == 4:
		return random.IntN(3)
	default:
		return fmt.Sprint("text ", random.IntN(3))
	}
}

// changed is a copy of a value with a change somewhere.
func changed(random *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		copied := map[string]any{}
		maps.Copy(copied, v)
		key := randomKey(random)
		switch value, found := copied[key]; {
		case found && random.IntN(3) > 0:
			copied[key] = changed(random, value)
		case found:
			delete(copied, key)
		default:
			copied[key] = randomValue(random, 2)
		}
		return copied
	case []any:
		at := random.IntN(len(v) + 1)
		copied := append([]any{}, v[:at]...)
		if random.IntN(3) > 0 || at == len(v) {
			return append(append(copied, randomValue(random, 2)), v[at:]...)
		}
		return append(copied, v[at+1:]...)
	default:
		return randomValue(random, 2)
	}
}
