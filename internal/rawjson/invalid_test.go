package rawjson_test

import (
	"testing"

	"github.com/pgagui/pgagui/internal/rawjson"
)

func TestWhyATextIsNoJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"score":NaN}`:         "NaN at character 10",
		`{"é":[1,Infinity]}`:    "Infinity at character 9",
		`{"a":-Infinity}`:       "-Infinity at character 6",
		`NaN`:                   "NaN at character 1",
		`{"a":"NaN","b":}`:      "invalid character '}' looking for beginning of value",
		`{"type":`:              "unexpected end of JSON input",
		`{"a":"NaN -Infinity"}`: "",
	} {
		got := ""
		if err := rawjson.WhyInvalid([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
