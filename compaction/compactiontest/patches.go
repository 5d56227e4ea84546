package compactiontest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A PatchCase says what a JSON patch makes of a document.
type PatchCase struct {
	Section  string // of the RFC that says so: 6902 for patches, 6901 for pointers
	Document string
	Patch    string
	Want     string // empty: the patch fails
}

// PatchCases go through what RFC 6902 (JSON Patch) and RFC 6901 (JSON Pointer) say, sentence by sentence. What is wanted keeps the
// spelling of the document and of the patch, and the order of their members.
var PatchCases = []PatchCase{
	// A patch is an array of operations, each an object. (6902, 3)
	{"6902 3", `{"a":1}`, `[]`, `{"a":1}`},
	{"6902 3", `{"a":1}`, `{}`, ``},
	{"6902 3", `{"a":1}`, `"add"`, ``},
	{"6902 3", `{"a":1}`, `null`, ``},
	{"6902 3", `{"a":1}`, `{"op":"remove","path":"/a"}`, ``},
	{"6902 3", `{"a":1}`, `[7]`, ``},
	{"6902 3", `{"a":1}`, `[null]`, ``},
	{"6902 3", `{"a":1}`, `["remove"]`, ``},
	{"6902 3", `{"a":1}`, `[[{"op":"remove","path":"/a"}]]`, ``},
	{"6902 3", `{"a":1}`, `[{}]`, ``},
	// They apply one after the other, each to what the one before has made.
	{"6902 3", `{"a":1}`, `[{"op":"add","path":"/b","value":[]},{"op":"add","path":"/b/-","value":1},{"op":"move","from":"/b","path":"/a"}]`, `{"a":[1]}`},
	{"6902 3", `{}`, `[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/a"},{"op":"add","path":"/a","value":2}]`, `{"a":2}`},
	// The document may be any value.
	{"6902 3", `7`, `[{"op":"replace","path":"","value":8}]`, `8`},
	{"6902 3", `"x"`, `[{"op":"test","path":"","value":"x"}]`, `"x"`},
	{"6902 3", `null`, `[{"op":"test","path":"","value":null}]`, `null`},
	{"6902 3", `[1]`, `[{"op":"add","path":"/0","value":0}]`, `[0,1]`},

	// An operation has exactly one "op", which is one of six. (6902, 4)
	{"6902 4", `{"a":1}`, `[{"path":"/a","value":1}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":null,"path":"/a","value":1}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":["add"],"path":"/a","value":1}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":7,"path":"/a","value":1}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"ADD","path":"/a","value":1}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"_get","path":"/a"}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"spam","path":"/a"}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"","path":"/a"}]`, ``},
	// It has exactly one "path", a pointer.
	{"6902 4", `{"a":1}`, `[{"op":"add","value":2}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"add","path":7,"value":2}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"add","path":null,"value":2}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"add","path":["/b"],"value":2}]`, ``},
	{"6902 4", `{"a":1}`, `[{"op":"add","path":"b","value":2}]`, ``},
	// Members that an operation does not need are ignored.
	{"6902 4", `{"a":1}`, `[{"op":"add","path":"/b","value":2,"more":"ignored"}]`, `{"a":1,"b":2}`},
	{"6902 4", `{"a":1}`, `[{"op":"remove","path":"/a","value":2,"from":7}]`, `{}`},
	{"6902 4", `{"a":1}`, `[{"op":"copy","from":"/a","path":"/b","value":2}]`, `{"a":1,"b":1}`},
	// The order of members does not count.
	{"6902 4", `{"a":1}`, `[{"value":2,"path":"/b","op":"add"}]`, `{"a":1,"b":2}`},

	// "add" into an object adds a member or replaces it. (6902, 4.1)
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/a","value":{"b":[]}}]`, `{"a":{"b":[]}}`},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/","value":2}]`, `{"a":1,"":2}`},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/-","value":2}]`, `{"a":1,"-":2}`},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/0","value":2}]`, `{"a":1,"0":2}`},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/__proto__","value":2}]`, `{"a":1,"__proto__":2}`},
	{"6902 4.1", `{"a":{"b":{}}}`, `[{"op":"add","path":"/a/b/c","value":true}]`, `{"a":{"b":{"c":true}}}`},
	// Into an array it inserts before the index; items at or above it shift.
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/0","value":9}]`, `{"a":[9,1,2]}`},
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/1","value":9}]`, `{"a":[1,9,2]}`},
	{"6902 4.1", `{"a":[]}`, `[{"op":"add","path":"/a/0","value":9}]`, `{"a":[9]}`},
	// The index may not be greater than the number of items; "-" is the end.
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/2","value":9}]`, `{"a":[1,2,9]}`},
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/3","value":9}]`, ``},
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/99999999999999999999","value":9}]`, ``},
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/-","value":[3,4]}]`, `{"a":[1,2,[3,4]]}`},
	{"6902 4.1", `{"a":[]}`, `[{"op":"add","path":"/a/-","value":1}]`, `{"a":[1]}`},
	{"6902 4.1", `{"a":[1,2]}`, `[{"op":"add","path":"/a/b","value":9}]`, ``},
	{"6902 4.1", `{"a":[[1]]}`, `[{"op":"add","path":"/a/-/0","value":9}]`, ``},
	// The root of the document: the value becomes the document.
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"","value":[1]}]`, `[1]`},
	{"6902 4.1", `[1]`, `[{"op":"add","path":"","value":null}]`, `null`},
	// There must be a value, of any type.
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/a"}]`, ``},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":""}]`, ``},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/b","value":null}]`, `{"a":1,"b":null}`},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/b","value":""}]`, `{"a":1,"b":""}`},
	// What holds the target must exist, and be an object or an array.
	{"6902 4.1", `{"a":{"foo":1}}`, `[{"op":"add","path":"/a/b","value":2}]`, `{"a":{"foo":1,"b":2}}`},
	{"6902 4.1", `{"q":{"bar":2}}`, `[{"op":"add","path":"/a/b","value":2}]`, ``},
	{"6902 4.1", `{"a":1}`, `[{"op":"add","path":"/a/b","value":9}]`, ``},
	{"6902 4.1", `{"a":null}`, `[{"op":"add","path":"/a/b","value":9}]`, ``},
	{"6902 4.1", `{"a":"x"}`, `[{"op":"add","path":"/a/-","value":9}]`, ``},
	{"6902 4.1", `{"a":"x"}`, `[{"op":"add","path":"/a/0","value":9}]`, ``},
	{"6902 4.1", `7`, `[{"op":"add","path":"/a","value":9}]`, ``},
	{"6902 4.1", `{"a":[]}`, `[{"op":"add","path":"/a/0/b","value":9}]`, ``},

	// "remove" takes away a value, which must exist; items above it shift. (6902, 4.2)
	{"6902 4.2", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
	{"6902 4.2", `{"a":null}`, `[{"op":"remove","path":"/a"}]`, `{}`},
	{"6902 4.2", `{"a":[1,2,3]}`, `[{"op":"remove","path":"/a/1"}]`, `{"a":[1,3]}`},
	{"6902 4.2", `{"a":[1,2,3]}`, `[{"op":"remove","path":"/a/1"},{"op":"remove","path":"/a/1"}]`, `{"a":[1]}`},
	{"6902 4.2", `{"a":[{"b":1}]}`, `[{"op":"remove","path":"/a/0/b"}]`, `{"a":[{}]}`},
	{"6902 4.2", `{"a":1}`, `[{"op":"remove","path":"/b"}]`, ``},
	{"6902 4.2", `{"a":1}`, `[{"op":"remove","path":"/a/b"}]`, ``},
	{"6902 4.2", `{"a":1}`, `[{"op":"remove","path":"/b/c"}]`, ``},
	{"6902 4.2", `{"a":[1]}`, `[{"op":"remove","path":"/a/1"}]`, ``},
	{"6902 4.2", `{"a":[1]}`, `[{"op":"remove","path":"/a/-"}]`, ``},
	{"6902 4.2", `{"a":[1]}`, `[{"op":"remove","path":"/a/-1"}]`, ``},
	{"6902 4.2", `{"a":1}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]`, ``},
	{"6902 4.2", `{"a":1}`, `[{"op":"remove","path":""}]`, `null`},

	// "replace" puts a value in the place of one, which must exist. (6902, 4.3)
	{"6902 4.3", `{"a":1,"b":2}`, `[{"op":"replace","path":"/a","value":{"x":1}}]`, `{"a":{"x":1},"b":2}`},
	{"6902 4.3", `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`, `{"a":null}`},
	{"6902 4.3", `{"a":[1]}`, `[{"op":"replace","path":"/a/0","value":2}]`, `{"a":[2]}`},
	{"6902 4.3", `[1]`, `[{"op":"replace","path":"","value":7}]`, `7`},
	{"6902 4.3", `{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`, ``},
	{"6902 4.3", `{"a":1}`, `[{"op":"replace","path":"/b/c","value":1}]`, ``},
	{"6902 4.3", `{"a":1}`, `[{"op":"replace","path":"/a"}]`, ``},
	{"6902 4.3", `{"a":[1]}`, `[{"op":"replace","path":"/a/1","value":2}]`, ``},
	{"6902 4.3", `{"a":[1]}`, `[{"op":"replace","path":"/a/-","value":2}]`, ``},
	{"6902 4.3", `7`, `[{"op":"replace","path":"/a","value":8}]`, ``},

	// "move" is a remove and then an add of what was removed. (6902, 4.4)
	{"6902 4.4", `{"a":{"x":1},"b":{}}`, `[{"op":"move","from":"/a/x","path":"/b/y"}]`, `{"a":{},"b":{"y":1}}`},
	{"6902 4.4", `{"a":[1,2,3]}`, `[{"op":"move","from":"/a/0","path":"/a/2"}]`, `{"a":[2,3,1]}`},
	{"6902 4.4", `{"a":[1,2,3]}`, `[{"op":"move","from":"/a/2","path":"/a/0"}]`, `{"a":[3,1,2]}`},
	{"6902 4.4", `{"a":[1,2,3]}`, `[{"op":"move","from":"/a/0","path":"/a/-"}]`, `{"a":[2,3,1]}`},
	{"6902 4.4", `{"a":[1,2,3]}`, `[{"op":"move","from":"/a/0","path":"/a/3"}]`, ``},
	{"6902 4.4", `[{},1]`, `[{"op":"move","from":"/1","path":"/0/x"}]`, `[{"x":1}]`},
	{"6902 4.4", `[1,{}]`, `[{"op":"move","from":"/0","path":"/1/x"}]`, ``},
	{"6902 4.4", `{"a":1,"ab":2}`, `[{"op":"move","from":"/a","path":"/ab"}]`, `{"ab":1}`},
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":""}]`, `{"b":1}`},
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":1}`},
	// "from" is a pointer to a value that exists.
	{"6902 4.4", `{"a":1}`, `[{"op":"move","path":"/b"}]`, ``},
	{"6902 4.4", `{"a":1}`, `[{"op":"move","from":7,"path":"/b"}]`, ``},
	{"6902 4.4", `{"a":1}`, `[{"op":"move","from":"a","path":"/b"}]`, ``},
	{"6902 4.4", `{"a":1}`, `[{"op":"move","from":"/x","path":"/b"}]`, ``},
	{"6902 4.4", `{"a":1}`, `[{"op":"move","from":"/x","path":"/x"}]`, ``},
	{"6902 4.4", `{"a":1}`, `[{"op":"move","from":"/x","path":""}]`, ``},
	{"6902 4.4", `{"a":[1]}`, `[{"op":"move","from":"/a/-","path":"/b"}]`, ``},
	{"6902 4.4", `{"a":1}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, ``},
	// It is no proper prefix of "path": nothing is moved into one of its children.
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, ``},
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/c"}]`, ``},
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"","path":"/a"}]`, ``},
	{"6902 4.4", `[[],[]]`, `[{"op":"move","from":"/0","path":"/0/-"}]`, ``},
	// To where it is.
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"","path":""}]`, `{"a":{"b":1}}`},
	{"6902 4.4", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"a":{"b":1}}`},
	{"6902 4.4", `[1,2]`, `[{"op":"move","from":"/0","path":"/0"}]`, `[1,2]`},

	// "copy" adds the value of another place, which stays. (6902, 4.5)
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"/a","path":"/b"}]`, `{"a":1,"b":1}`},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"/a","path":"/a"}]`, `{"a":1}`},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, `{"a":1,"b":{"a":1}}`},
	{"6902 4.5", `{"a":[1]}`, `[{"op":"copy","from":"/a","path":""}]`, `[1]`},
	{"6902 4.5", `{"a":{"b":{}}}`, `[{"op":"copy","from":"/a","path":"/a/b/c"}]`, `{"a":{"b":{"c":{"b":{}}}}}`},
	{"6902 4.5", `[1,2]`, `[{"op":"copy","from":"/1","path":"/0"}]`, `[2,1,2]`},
	{"6902 4.5", `[[1]]`, `[{"op":"copy","from":"/0","path":"/-"},{"op":"add","path":"/1/-","value":2}]`, `[[1],[1,2]]`},
	{"6902 4.5", `{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/a/d","value":2},{"op":"remove","path":"/c/b"}]`, `{"a":{"b":1,"d":2},"c":{}}`},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","path":"/b"}]`, ``},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":null,"path":"/b"}]`, ``},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"a","path":"/b"}]`, ``},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"/x","path":"/b"}]`, ``},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"/x","path":""}]`, ``},
	{"6902 4.5", `{"a":[1]}`, `[{"op":"copy","from":"/a/-","path":"/b"}]`, ``},
	{"6902 4.5", `{"a":1}`, `[{"op":"copy","from":"/a","path":"/b/c"}]`, ``},

	// "test" wants an equal value at a place that exists. (6902, 4.6)
	{"6902 4.6", `{"n":1}`, `[{"op":"test","path":"","value":{"n":1}}]`, `{"n":1}`},
	{"6902 4.6", `{"n":1}`, `[{"op":"test","path":"/n"}]`, ``},
	{"6902 4.6", `{"n":null}`, `[{"op":"test","path":"/n"}]`, ``},
	{"6902 4.6", `{"n":null}`, `[{"op":"test","path":"/m","value":null}]`, ``},
	{"6902 4.6", `{"n":[1]}`, `[{"op":"test","path":"/n/-","value":1}]`, ``},
	// Both of the same type.
	{"6902 4.6", `{"n":10}`, `[{"op":"test","path":"/n","value":"10"}]`, ``},
	{"6902 4.6", `{"n":null}`, `[{"op":"test","path":"/n","value":false}]`, ``},
	{"6902 4.6", `{"n":0}`, `[{"op":"test","path":"/n","value":false}]`, ``},
	{"6902 4.6", `{"n":{}}`, `[{"op":"test","path":"/n","value":[]}]`, ``},
	{"6902 4.6", `{"n":[1,2]}`, `[{"op":"test","path":"/n","value":{"0":1,"1":2}}]`, ``},
	{"6902 4.6", `[7]`, `[{"op":"test","path":"","value":7}]`, ``},
	{"6902 4.6", `7`, `[{"op":"test","path":"","value":[7]}]`, ``},
	// Strings: the same characters.
	{"6902 4.6", `{"n":"\u0061"}`, `[{"op":"test","path":"/n","value":"a"}]`, `{"n":"\u0061"}`},
	{"6902 4.6", `{"n":"a"}`, `[{"op":"test","path":"/n","value":"A"}]`, ``},
	{"6902 4.6", `{"n":"\u00e9"}`, `[{"op":"test","path":"/n","value":"e\u0301"}]`, ``},
	{"6902 4.6", `{"n":"a"}`, `[{"op":"test","path":"/n","value":"a "}]`, ``},
	// Numbers: equal as numbers.
	{"6902 4.6", `{"n":1}`, `[{"op":"test","path":"/n","value":1.0}]`, `{"n":1}`},
	{"6902 4.6", `{"n":1e0}`, `[{"op":"test","path":"/n","value":0.1e1}]`, `{"n":1e0}`},
	{"6902 4.6", `{"n":100}`, `[{"op":"test","path":"/n","value":1E+2}]`, `{"n":100}`},
	{"6902 4.6", `{"n":-0.0}`, `[{"op":"test","path":"/n","value":0e5}]`, `{"n":-0.0}`},
	{"6902 4.6", `{"n":9007199254740993}`, `[{"op":"test","path":"/n","value":9007199254740992}]`, ``},
	{"6902 4.6", `{"n":-1}`, `[{"op":"test","path":"/n","value":1}]`, ``},
	{"6902 4.6", `{"n":1e400}`, `[{"op":"test","path":"/n","value":1e401}]`, ``},
	// Arrays: as many items, each equal to the one at its place.
	{"6902 4.6", `{"n":[1,2]}`, `[{"op":"test","path":"/n","value":[1,2.0]}]`, `{"n":[1,2]}`},
	{"6902 4.6", `{"n":[]}`, `[{"op":"test","path":"/n","value":[]}]`, `{"n":[]}`},
	{"6902 4.6", `{"n":[1,2]}`, `[{"op":"test","path":"/n","value":[2,1]}]`, ``},
	{"6902 4.6", `{"n":[1,2]}`, `[{"op":"test","path":"/n","value":[1]}]`, ``},
	{"6902 4.6", `{"n":[1]}`, `[{"op":"test","path":"/n","value":[1,1]}]`, ``},
	// Objects: as many members, with equal names and values, in any order.
	{"6902 4.6", `{"n":{"a":1,"b":[1,2]}}`, `[{"op":"test","path":"/n","value":{"b": [1, 2.0], "a":1}}]`, `{"n":{"a":1,"b":[1,2]}}`},
	{"6902 4.6", `{"n":{"a":1}}`, `[{"op":"test","path":"/n","value":{"a":1,"b":1}}]`, ``},
	{"6902 4.6", `{"n":{"a":1,"b":1}}`, `[{"op":"test","path":"/n","value":{"a":1}}]`, ``},
	{"6902 4.6", `{"n":{"a":1}}`, `[{"op":"test","path":"/n","value":{"b":1}}]`, ``},
	{"6902 4.6", `{"n":{"a":1}}`, `[{"op":"test","path":"/n","value":{"a":null}}]`, ``},
	// Literals: the same one.
	{"6902 4.6", `{"n":null}`, `[{"op":"test","path":"/n","value":null}]`, `{"n":null}`},
	{"6902 4.6", `{"n":true}`, `[{"op":"test","path":"/n","value":true}]`, `{"n":true}`},
	{"6902 4.6", `{"n":true}`, `[{"op":"test","path":"/n","value":false}]`, ``},

	// When an operation fails, the whole patch does. (6902, 5)
	{"6902 5", `{"a":1}`, `[{"op":"add","path":"/b","value":1},{"op":"test","path":"/a","value":2}]`, ``},
	{"6902 5", `{"a":{"b":"c"}}`, `[{"op":"replace","path":"/a/b","value":42},{"op":"test","path":"/a/b","value":"C"}]`, ``},
	{"6902 5", `{"a":1}`, `[{"op":"remove","path":"/x"},{"op":"add","path":"/b","value":1}]`, ``},
	{"6902 5", `{"a":[1,2,3],"b":{"x":1},"c":1}`, `[{"op":"remove","path":"/a/0"},{"op":"add","path":"/a/-","value":4},{"op":"replace","path":"/a/0","value":5},{"op":"remove","path":"/b"},{"op":"add","path":"/b","value":2},{"op":"add","path":"","value":3},{"op":"remove","path":"/x"}]`, ``},

	// Of members with the same name, the last counts. (8259, 4)
	{"8259 4", `{"a":1}`, `[{"op":"add","op":"remove","path":"/x","path":"/a"}]`, `{}`},
	{"8259 4", `{"a":1,"a":2}`, `[{"op":"test","path":"/a","value":2}]`, `{"a":2}`},

	// A pointer is empty, or tokens each after a "/". (6901, 3)
	{"6901 3", `{"":{"":1}}`, `[{"op":"replace","path":"//","value":2}]`, `{"":{"":2}}`},
	{"6901 3", `{"a":{"":1}}`, `[{"op":"remove","path":"/a/"}]`, `{"a":{}}`},
	{"6901 3", `{"a":1}`, `[{"op":"remove","path":"/a/"}]`, ``},
	{"6901 3", `{"a":1}`, `[{"op":"remove","path":" /a"}]`, ``},
	{"6901 3", `{"a":1}`, `[{"op":"remove","path":"#/a"}]`, ``},
	// A "~" only ever stands before 0 or 1.
	{"6901 3", `{"a":1}`, `[{"op":"add","path":"/a~2","value":2}]`, ``},
	{"6901 3", `{"a":1}`, `[{"op":"add","path":"/a~","value":2}]`, ``},
	{"6901 3", `{"a":1}`, `[{"op":"add","path":"/~/a","value":2}]`, ``},
	{"6901 3", `{"a":1}`, `[{"op":"move","from":"/a~2","path":"/b"}]`, ``},
	// "~1" becomes "/" first, then "~0" becomes "~". (6901, 4)
	{"6901 4", `{"a/b":1,"m~n":2,"~1":3}`, `[{"op":"remove","path":"/a~1b"},{"op":"remove","path":"/m~0n"},{"op":"replace","path":"/~01","value":4}]`, `{"~1":4}`},
	{"6901 4", `{}`, `[{"op":"add","path":"/~0~1~00~11","value":1}]`, `{"~/~0/1":1}`},
	{"6901 4", `{"a~1b":1}`, `[{"op":"remove","path":"/a~1b"}]`, ``},
	{"6901 4", `{"a%20b":1,"c d":2,"e^f":3,"g|h":4}`, `[{"op":"remove","path":"/a%20b"},{"op":"remove","path":"/c d"},{"op":"remove","path":"/e^f"}]`, `{"g|h":4}`},
	// A member's name is equal code point by code point.
	{"6901 4", `{"a":1}`, `[{"op":"remove","path":"/A"}]`, ``},
	{"6901 4", `{"\u00e9":1}`, `[{"op":"remove","path":"/e\u0301"}]`, ``},
	// An index is digits without a leading zero.
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/01","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/00","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/+1","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/1e0","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/1.0","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/-1","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"add","path":"/a/ 1","value":9}]`, ``},
	{"6901 4", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/01"}]`, ``},
	{"6901 4", `{"a":[[1]]}`, `[{"op":"remove","path":"/a/00/0"}]`, ``},
	{"6901 4", `{"a":[1,2,3,4,5,6,7,8,9,10,11]}`, `[{"op":"remove","path":"/a/10"}]`, `{"a":[1,2,3,4,5,6,7,8,9,10]}`},
	// In an object it is a name like any other.
	{"6901 4", `{"0":1,"01":2}`, `[{"op":"remove","path":"/01"}]`, `{"0":1}`},
	// A pointer in a JSON string is what its escapes stand for. (6901, 5)
	{"6901 5", `{"a":1}`, `[{"op":"remove","path":"/\u0061"}]`, `{}`},
	{"6901 5", `{"\u0061":1}`, `[{"op":"remove","path":"/a"}]`, `{}`},
	{"6901 5", `{"i\\j":1,"k\"l":2}`, `[{"op":"remove","path":"/i\\j"},{"op":"remove","path":"/k\"l"}]`, `{}`},
	{"6901 5", `{"a\/b":1}`, `[{"op":"remove","path":"/a~1b"}]`, `{}`},
	{"6901 5", `{"\ud800":1}`, `[{"op":"remove","path":"/\ud801"}]`, ``},
	{"6901 5", `{"\ud800":1,"\u0000":2}`, `[{"op":"remove","path":"/\uD800"},{"op":"remove","path":"/\u0000"}]`, `{}`},
	{"6901 5", `{"😀":1}`, `[{"op":"remove","path":"/\ud83d\ude00"}]`, `{}`},
}

// PatchStream returns a stream of patches on one large state, replaced now and then; about half of the patches fail. It is the same for
// the same seed and options.
func PatchStream(seed uint64, options Options) []json.RawMessage {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0xda7a)), Options: options, lanes: map[string]stream{}}
	for range max(1, options.Events) {
		if len(g.events) == 0 || g.chance(1) {
			g.emit("STATE_SNAPSHOT", "snapshot", g.largeObject(2))
		} else {
			g.emit("STATE_DELTA", "delta", g.patch())
		}
	}
	return g.events
}

// largeObject makes an object of objects and lists, nested so deep, that the patches of the generator lead into.
func (g *generator) largeObject(depth int) string {
	if depth == 0 {
		return g.object(3)
	}
	items := make([]string, 8)
	for i := range items {
		items[i] = g.largeObject(depth - 1)
	}
	return fmt.Sprintf(`{"a":%s,"b":%s,"c":%s,"items":[%s]}`, g.largeObject(depth-1), g.largeObject(depth-1), g.value(2), strings.Join(items, ","))
}
