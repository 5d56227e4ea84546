package session_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

func TestGeneratedSessionsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		text := newGenerator(seed).session()
		if !json.Valid([]byte(text)) {
			t.Fatalf("seed %d: the generator is wrong: %s", seed, text)
		}
		var s session.Session
		must.Do(t, s.UnmarshalJSON([]byte(text))) // json.Unmarshal takes the white space around it off
		wantText(t, written(t, s), text)
		var again session.Session
		must.Do(t, cbor.Unmarshal(must.Have(cbor.Marshal(s))(t), &again))
		wantText(t, written(t, again), text)
	}
}

// Whatever the document looked like, what is written is read as what the state was in the end.
func TestGeneratedChangesAreReadBack(t *testing.T) {
	t.Parallel()
	type item struct {
		ID   int    `json:"id,omitempty"`
		Text string `json:"text"`
	}
	type state struct {
		Name  string         `json:"name"`
		Items []item         `json:"items,omitempty"`
		Map   map[string]any `json:"map"`
		One   *item          `json:"one"`
	}
	for seed := range uint64(1000) {
		g := newGenerator(seed)
		items := func() string {
			return "[" + g.join(4, func() string {
				return `{"text":"` + g.pick("a", "b", "c") + `","u":` + g.value(1) + `,"id":` + g.pick("1", "2", "3") + `}`
			}) + "]"
		}
		document := `{"session_id":"s","state":{"k":{` + g.join(7, func() string {
			return g.pick(
				`"name":"x"`, `"Name":"\u0079"`, `"name":null`, `"u\u006e":`+g.value(2), `"items":`+items(), `"ITEMS" : `+items(), `"items":null`,
				`"map":{`+g.join(3, func() string { return `"` + g.pick("a", "A", "b") + `":` + g.pick("1.0", "[1,2]", `{"x":1,"X":2}`) })+"}",
				`"one":{"text":"t","u":1.50}`, `"one":null`)
		}) + `}}}`
		s := read(t, document)
		changed := must.Have(session.StateOf[state](&s, "k"))(t)
		for range g.IntN(4) {
			switch g.IntN(7) {
			case 0:
				changed.Name = g.pick("x", "z", "")
			case 1:
				changed.Items = append(changed.Items, item{g.IntN(4), "new"})
			case 2:
				if len(changed.Items) > 0 {
					changed.Items = changed.Items[1:]
				}
			case 3:
				if len(changed.Items) > 0 {
					changed.Items[g.IntN(len(changed.Items))].Text = g.pick("a", "z")
				}
			case 4:
				changed.Map = map[string]any{g.pick("a", "A", "c"): g.pick("1", "2")}
			case 5:
				delete(changed.Map, g.pick("a", "A", "b"))
			case 6:
				changed.One = &item{Text: g.pick("t", "z")}
			}
		}
		var back struct {
			State struct{ K state }
		}
		text := written(t, s)
		must.Do(t, json.Unmarshal([]byte(text), &back))
		// An empty list and no list are written alike.
		got, want := must.Have(json.Marshal(back.State.K))(t), must.Have(json.Marshal(changed))(t)
		if string(got) != string(want) {
			t.Fatalf("seed %d: %s was written as %s\nwhich reads %s, want %s", seed, document, text, got, want)
		}
	}
}

func FuzzSession(f *testing.F) {
	for _, name := range shapes {
		f.Add(golden(f, name))
	}
	for seed := range uint64(50) {
		f.Add([]byte(newGenerator(seed).session()))
	}
	f.Add([]byte("{\"threadId\":\"\xff\",\"state\":{\"\xed\xa0\x80\":\"\xff\"}}"))
	f.Add([]byte(`{"stateBag":` + strings.Repeat(`{"a":[`, 40) + strings.Repeat(`]}`, 40) + `}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s session.Session
		if err := s.UnmarshalJSON(text); err != nil || string(text) == "null" {
			return
		}
		wantText(t, written(t, s), string(text))
		var again session.Session
		must.Do(t, cbor.Unmarshal(must.Have(cbor.Marshal(s))(t), &again))
		wantText(t, written(t, again), string(text))
		if !reflect.DeepEqual(again.Keys(), s.Keys()) {
			t.Fatal(again.Keys(), s.Keys())
		}
	})
}

// A generator makes session documents of odd JSON, that depend on the seed alone.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 7))} }

func (g generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g generator) space() string {
	if g.IntN(8) > 0 {
		return ""
	}
	return g.pick(" ", "\n\t", "\r\n  ")
}

func (g generator) join(most int, make func() string) string {
	var parts []string
	for range g.IntN(most + 1) {
		parts = append(parts, g.space()+make()+g.space())
	}
	return strings.Join(parts, ",")
}

func (g generator) session() string {
	states := "{" + g.join(5, func() string { return g.key() + ":" + g.space() + g.value(0) }) + "}"
	known := g.pick(
		`"threadId":"t`+g.text()+`","runId":`+g.pick("null", `"r"`)+`,"state":`+states+`,"versions":{"a":1}`,
		`"type":"session","session_id":"s","service_session_id":`+g.value(2)+`, "state" : `+states,
		`"conversationId":null,"stateBag":`+states,
		`"stateBag":`+states)
	unknown := g.join(3, func() string { return `"x` + g.text() + `":` + g.value(1) })
	switch {
	case unknown == "":
	case g.IntN(2) == 0:
		known = unknown + "," + known
	default:
		known += "," + unknown
	}
	return g.space() + "{" + known + "}" + g.space()
}

func (g generator) key() string {
	return g.pick(`"a"`, `"a"`, `"$type"`, `"type"`, `"\u0061"`, `"k`+g.text()+`"`)
}

func (g generator) text() string {
	return g.pick("", "", "plain", "é😀", `\u0000`, `\ud83d`, `\udc00\ud83d`, `\uD83D\uDE00`, `\u00e9`, `\b\f\n\r\t\/\"\\`, `<&>`, "\u2028", `\u001f`, "\u007f")
}

func (g generator) value(depth int) string {
	kinds := 8
	if depth > 5 {
		kinds = 6
	}
	switch g.IntN(kinds) {
	case 0:
		return g.pick("null", "true", "false")
	case 1, 2:
		return g.pick("0", "-0", "1", "1.0", "-1.5", "1.50", "1e400", "-1E-400", "1E5", "1e+21", "1e21", "1e-7", "0.1", "0.30000000000000004", "123456789.0",
			"-0.0", "12345678901234567890", "18446744073709551616", "-18446744073709551617", "99999999999999999999999999999999999999999999", "5e-324")
	case 3:
		return fmt.Sprint(g.Int64())
	case 4, 5:
		return `"` + g.text() + g.text() + `"`
	case 6:
		if g.IntN(60) == 0 {
			return strings.Repeat("[", 100) + g.value(6) + strings.Repeat("]", 100)
		}
		return "[" + g.space() + g.join(3, func() string { return g.value(depth + 1) }) + "]"
	default:
		return "{" + g.space() + g.join(4, func() string { return g.key() + g.space() + ":" + g.value(depth+1) }) + "}"
	}
}
