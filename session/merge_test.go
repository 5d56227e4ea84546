package session

import (
	"encoding/json"
	"testing"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, document, before, after, want string }{
		{"nothing changed", `{ "a" : 1.0 }`, `{"a":1}`, `{"a":1}`, `{ "a" : 1.0 }`},
		{"in place", `{"$type":"T","a":1.0,"u":[1.50],"b":2.0}`, `{"a":1,"b":2}`, `{"a":3,"b":2}`, `{"$type":"T","a":3,"u":[1.50],"b":2.0}`},
		{"nested", `{"a":{"u":1.0,"x":1}}`, `{"a":{"x":1}}`, `{"a":{"x":2}}`, `{"a":{"u":1.0,"x":2}}`},
		{"members that come", `{"u":1}`, `{"a":0}`, `{"a":0,"b":1}`, `{"u":1,"b":1}`},
		{"members that go", `{"a":1,"u":1,"b":2}`, `{"a":1,"b":2}`, `{"b":2}`, `{"u":1,"b":2}`},
		{"the last one goes", `{"a":1}`, `{"a":1}`, `{}`, `{}`},
		{"zero that was not written", `{}`, `{"n":0,"s":""}`, `{"n":0,"s":"x"}`, `{"s":"x"}`},
		{"upper and lower case", `{"UserName":"a","Age":1}`, `{"userName":"a","age":1}`, `{"userName":"b","age":1}`, `{"UserName":"b","Age":1}`},
		{"a map has both cases", `{"A":1,"a":2}`, `{"A":1,"a":2}`, `{"A":1,"a":3}`, `{"A":1,"a":3}`},
		{"a map changes case", `{"A":1}`, `{"A":1}`, `{"a":2}`, `{"a":2}`},
		{"duplicate keys", `{"a":1,"a":2}`, `{"a":2}`, `{"a":3}`, `{"a":3}`},
		{"duplicate keys stay", `{"a":1,"a":2,"b":1}`, `{"a":2,"b":1}`, `{"a":2,"b":2}`, `{"a":1,"a":2,"b":2}`},
		{"duplicate keys that were read together", `{"a":{"x":1},"a":{"y":2}}`, `{"a":{"x":1,"y":2}}`, `{"a":{"x":1,"y":3}}`, `{"a":{"x":1,"y":3}}`},
		{"duplicate keys go", `{"a":1,"a":2}`, `{"a":2}`, `{}`, `{}`},
		{"another type", `{"a":null}`, `{"a":{}}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`},
		{"lines", "{\n  \"a\": 1\n}", `{"a":1}`, `{"a":2,"b":3}`, "{\n  \"a\": 2,\n  \"b\":3\n}"},
		{"elements that come", `[{"u":1,"x":1}]`, `[{"x":1}]`, `[{"x":1},{"x":2}]`, `[{"u":1,"x":1},{"x":2}]`},
		{"a window that slides", `[{"u":1,"x":1},{"u":2,"x":2},{"u":3,"x":3}]`, `[{"x":1},{"x":2},{"x":3}]`, `[{"x":2},{"x":3},{"x":4}]`, `[{"u":2,"x":2},{"u":3,"x":3},{"x":4}]`},
		{"an element that changes", `[{"u":1,"x":1},{"u":2,"x":2}]`, `[{"x":1},{"x":2}]`, `[{"x":1},{"x":9}]`, `[{"u":1,"x":1},{"u":2,"x":9}]`},
		{"elements that become one", `[{"u":1,"x":1},{"u":2,"x":2},{"u":3,"x":3}]`, `[{"x":1},{"x":2},{"x":3}]`, `[{"x":0},{"x":3}]`, `[{"x":0},{"u":3,"x":3}]`},
		{"elements that move", `[{"u":1,"x":1},{"u":2,"x":2}]`, `[{"x":1},{"x":2}]`, `[{"x":2},{"x":1}]`, `[{"u":2,"x":2},{"u":1,"x":1}]`},
		{"equal elements", `[{"u":1,"x":0},{"u":2,"x":0}]`, `[{"x":0},{"x":0}]`, `[{"x":0},{"x":0},{"x":0}]`, `[{"u":1,"x":0},{"u":2,"x":0},{"x":0}]`},
		{"another id", `[{"u":1,"id":1,"x":1}]`, `[{"id":1,"x":1}]`, `[{"id":2,"x":1}]`, `[{"id":2,"x":1}]`},
		{"all elements go", `[1.0]`, `[1]`, `[]`, `[]`},
		{"not element by element", `[1,2]`, `["1-2"]`, `["1-3"]`, `["1-3"]`},
		{"scalars", `1.0`, `1`, `2`, `2`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := merge(json.RawMessage(test.document), json.RawMessage(test.before), json.RawMessage(test.after))
			if string(got) != test.want {
				t.Errorf("%s, from %s to %s, became\n%s, want\n%s", test.document, test.before, test.after, got, test.want)
			}
		})
	}
}
