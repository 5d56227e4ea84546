package rawjson

import "testing"

func TestIsBinary(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: true, `"\u0000"`: false, `"\\u0000"`: true, `"\\\u0000"`: false, `"\ud83d\ude00"`: true, `"\uD83D\uDE00x"`: true, `"\ud83d"`: false, `"\ude00"`: false,
		`"\ud83dx\ude00"`: false, `"\ude00\ud83d"`: false, `"\ud83d\ud83d\ude00"`: false, `"\ud83d\ude00\ude00"`: false, `"\u00e4\ud7ff\ue000\n\""`: true,
		`"\u0039\u00410000"`: true, `"d800\\ud800"`: true,
	} {
		if got := isBinary([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestNoJSONIsNotSent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{`{"a":1}`: true, ` [1, 2] `: true, `{"a":1`: false, ``: false, "\"\xff\"": false, "\"\x00\"": false, `"\u0000\ud83d"`: true} {
		if _, err := Text(text).Value(); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
