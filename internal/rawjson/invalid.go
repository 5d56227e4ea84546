package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// WhyInvalid says what is wrong with a text that is no JSON value; nil: nothing. Python writes the
// numbers NaN and Infinity, which JSON has not, so they are named.
func WhyInvalid(text []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := max(0, int(syntax.Offset)-1)
	for _, name := range []string{"NaN", "Infinity", "-Infinity"} {
		// The offset is that of the character that is wrong: in -Infinity the I.
		begin := at - len(name) + len(bytes.TrimPrefix([]byte(name), []byte("-")))
		if begin >= 0 && bytes.HasPrefix(text[begin:], []byte(name)) && (name[0] == '-' || begin == 0 || text[begin-1] != '-') {
			return fmt.Errorf("%s at character %d", name, utf8.RuneCount(text[:begin])+1)
		}
	}
	return err
}
