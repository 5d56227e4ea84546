package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pgagui/pgagui/internal/must"
)

// isValid says what the scanner thinks of a text.
func isValid(text []byte) bool {
	end, ok := SkipValue(text, SkipSpace(text, 0), 0)
	return ok && SkipSpace(text, end) == len(text)
}

var someTexts = []string{
	` { "a" : [ 1 , {"b":"\ud83d\ude00"} ] , "\u0061" : null , "" : "\\u0000" } `, `[ {"a" : 1} ,"]",[ ] ]`, `{"a":{"a":1},"b":[],"a":2}`,
	``, ` `, `{`, `}`, `[`, `[]`, `{}`, ` { } `, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1,"a":2}`, `[[[]]]`, `[}`,
	`0`, `-0`, `00`, `01`, `-`, `+1`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1E-5`, `1e5.5`, `0x1`, `1e400`, `--1`, `NaN`, `Infinity`,
	`true`, `false`, `null`, `tru`, `truee`, `nul`, `True`, `truefalse`,
	`"`, `""`, `"a`, `"\"`, `"\\"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\uD83D"`, `"\u0000"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\xff\xfe\"", `"` + strings.Repeat("é", 50) + `"`,
	`"1234567"`, `"12345678"`, `"123456789"`, `"1234567\"89012345"`, "\"1234567\t\"", "\"12345678\x01\"", `"a" "b"`, "\u00a01", "1\v", "\ufeff1",
	strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
	strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth), strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1), strings.Repeat("[", 1<<20),
}

func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, text := range someTexts {
		if got, want := isValid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%.60q: valid is %v, want %v", text, got, want)
		}
	}
	// Every byte at every offset of a word.
	for c := range 256 {
		for offset := range 17 {
			text := []byte(`"` + strings.Repeat("x", offset) + string([]byte{byte(c)}) + `xxxxxxxx"`)
			if got, want := isValid(text), json.Valid(text); got != want {
				t.Errorf("%q: valid is %v, want %v", text, got, want)
			}
		}
	}
}

func TestStringsAreDecodedAndWritten(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{`plain`, "plain"}, {`\b\f\n\r\t\"\\\/`, "\b\f\n\r\t\"\\/"}, {`\u0000\u00e9\u65e5\uD83C\uDF89`, "\x00\u00e9\u65e5\U0001f389"},
		{`\ud800`, "\xed\xa0\x80"}, {`\udfff\ud800x`, "\xed\xbf\xbf\xed\xa0\x80x"}, {`\ud800\ud83d\ude00`, "\xed\xa0\x80\U0001f600"}, {`\ud800\n`, "\xed\xa0\x80\n"}, {`한`, "한"},
	} {
		got := string(Decode(nil, []byte(test.text)))
		if got != test.want {
			t.Errorf("%s decodes to %q, want %q", test.text, got, test.want)
		}
		again := Quote(nil, got)
		if !json.Valid(again) || string(Decode(nil, again[1:len(again)-1])) != got {
			t.Errorf("%s is written as %s, which is another string", test.text, again)
		}
	}
}

// checkContainer compares what the package reads of a valid text, if that is an object or an array, with what encoding/json reads.
func checkContainer(t *testing.T, text []byte) {
	t.Helper()
	for _, parse := range []func([]byte) (Object, bool){ParseObject, ParseArray} {
		if o, ok := parse(text); ok && !bytes.Equal(o.Text(), text) {
			t.Errorf("%q is written as %q", text, o.Text())
		}
	}
	if !utf8.Valid(text) {
		return // encoding/json replaces what is no UTF-8
	}
	if _, ok := ParseArray(text); ok {
		var want []json.RawMessage
		must.Do(t, json.Unmarshal(text, &want))
		var got []json.RawMessage
		for element := range Elements(text[SkipSpace(text, 0):]) {
			got = append(got, element)
		}
		if !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%q has the elements %q, want %q", text, got, want)
		}
	}
	if _, ok := ParseObject(text); ok {
		var want map[string]json.RawMessage
		must.Do(t, json.Unmarshal(text, &want))
		for key, value := range want {
			if got := MemberOf(text, key); !strings.Contains(key, "\ufffd") && !bytes.Equal(got, value) {
				t.Errorf("%q has the member %q: %q, want %q", text, key, got, value)
			}
		}
	}
}

func TestContainersAgreeWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, text := range someTexts {
		if isValid([]byte(text)) && len(text) < 1000 {
			checkContainer(t, []byte(text))
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range someTexts {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, want := isValid(text), json.Valid(text); got != want {
			t.Fatalf("%q: valid is %v, want %v", text, got, want)
		}
		if isValid(text) {
			checkContainer(t, text)
			isBinary(text) // must not panic
		}
		if len(text) > 0 && text[0] == '"' && isValid(text) && utf8.Valid(text) {
			text = bytes.TrimRight(text, " \t\r\n")
			decoded := Decode(nil, text[1:len(text)-1])
			var want string
			must.Do(t, json.Unmarshal(text, &want))
			if strings.ToValidUTF8(string(decoded), "\ufffd") != strings.ToValidUTF8(want, "\ufffd") && !strings.Contains(want, "\ufffd") {
				t.Errorf("%s decodes to %q, want %q", text, decoded, want)
			}
			again := Quote(nil, string(decoded))
			if !isValid(again) || !bytes.Equal(Decode(nil, again[1:len(again)-1]), decoded) {
				t.Errorf("%s is written as %s, which is another string", text, again)
			}
		}
	})
}

// What a caller takes for an object may be an empty text.
func TestAnEmptyTextHasNoMembers(t *testing.T) {
	for key := range Members(nil) {
		t.Errorf("a member %s", key)
	}
}
