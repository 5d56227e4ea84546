package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// isValid says what the scanner thinks of a text.
func isValid(text []byte) bool {
	end, ok := skipValue(text, skipSpace(text, 0), 0)
	return ok && skipSpace(text, end) == len(text)
}

var someTexts = []string{
	``, ` `, `{`, `}`, `[`, `[]`, `{}`, ` { } `, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1,"a":2}`, `[[[]]]`, `[}`,
	`0`, `-0`, `00`, `01`, `-`, `+1`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1E-5`, `1e5.5`, `0x1`, `1e400`, `--1`, `NaN`, `Infinity`,
	`true`, `false`, `null`, `tru`, `truee`, `nul`, `True`, `truefalse`,
	`"`, `""`, `"a`, `"\"`, `"\\"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\uD83D"`, `"\u0000"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\xff\xfe\"", `"` + strings.Repeat("é", 50) + `"`,
	`"1234567"`, `"12345678"`, `"123456789"`, `"1234567\"89012345"`, "\"1234567\t\"", "\"12345678\x01\"", `"a" "b"`, "\u00a01", "1\v", "\ufeff1",
	strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth), strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1), strings.Repeat("[", 1<<20),
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
		got := string(decodeString(nil, []byte(test.text)))
		if got != test.want {
			t.Errorf("%s decodes to %q, want %q", test.text, got, test.want)
		}
		again := quote(nil, got)
		if !json.Valid(again) || string(decodeString(nil, again[1:len(again)-1])) != got {
			t.Errorf("%s is written as %s, which is another string", test.text, again)
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
		if len(text) > 0 && text[0] == '"' && isValid(text) && utf8.Valid(text) {
			text = bytes.TrimRight(text, " \t\r\n")
			decoded := decodeString(nil, text[1:len(text)-1])
			var want string
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if strings.ToValidUTF8(string(decoded), "\ufffd") != strings.ToValidUTF8(want, "\ufffd") && !strings.Contains(want, "\ufffd") {
				t.Errorf("%s decodes to %q, want %q", text, decoded, want)
			}
			again := quote(nil, string(decoded))
			if !isValid(again) || !bytes.Equal(decodeString(nil, again[1:len(again)-1]), decoded) {
				t.Errorf("%s is written as %s, which is another string", text, again)
			}
		}
	})
}

func TestSplit(t *testing.T) {
	t.Parallel()
	var got []string
	for element, err := range Split([]byte(" [ {\"a\" : [1, 2]} ,\n7,\t\"],\" ] ")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(element))
	}
	if strings.Join(got, "|") != `{"a" : [1, 2]}|7|"],"` {
		t.Errorf("got %q", got)
	}
	for range Split([]byte(`[1,2]`)) {
		break // must not go on
	}
}

func TestDamagedBatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		batch    string
		offset   int
		elements int
	}{
		{``, 0, 0}, {`{}`, 0, 0}, {`[`, 1, 0}, {`[{}`, 3, 1}, {`[{} {}]`, 4, 1}, {`[{},]`, 4, 1}, {`[{}]x`, 4, 1}, {`[{"type":"TEXT_MESSAGE_START","messageId":tru}]`, 42, 0}, {`[{},{"a":"` + "\n" + `"}]`, 10, 1},
	} {
		var syntax *SyntaxError
		if err := New().ApplyBatch([]byte(test.batch)); !errors.As(err, &syntax) || syntax.Offset != test.offset {
			t.Errorf("ApplyBatch %q: got %v, want a problem at byte %d", test.batch, err, test.offset)
		}
		count := 0
		var last error
		for _, err := range Split([]byte(test.batch)) {
			if last = err; err == nil {
				count++
			}
		}
		if !errors.As(last, &syntax) || syntax.Offset != test.offset || count != test.elements {
			t.Errorf("Split %q: got %d elements and %v, want %d and a problem at byte %d", test.batch, count, last, test.elements, test.offset)
		}
	}
}
