// Package rawjson carries JSON between Go and the database as it is.
package rawjson

import (
	"database/sql/driver"
	"unsafe"
)

// Text is a JSON text. The driver parses what it reads into a json.RawMessage, which takes longer than the reading; this it does not.
type Text []byte

// ScanBytes reads a value of type json; NULL becomes nil.
func (t *Text) ScanBytes(text []byte) error {
	if text == nil {
		*t = nil
		return nil
	}
	*t = append(Text{}, text...) // the driver uses its bytes again
	return nil
}

// Value writes the text verbatim, and as text: so it goes through poolers that know no prepared statements. nil becomes NULL.
func (t Text) Value() (driver.Value, error) {
	if t == nil {
		return nil, nil
	}
	return String(t), nil // the driver copies it at once
}

// String returns a text as a string that shares its memory, so the text must not be changed any more.
func String(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
