package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file converts JSON documents to CBOR (RFC 8949) and back, byte for byte. A map, array, string or number
// is written as CBOR if reading it gives the same text. Numbers with a fraction or an exponent are floats, others
// integers. What CBOR cannot express, such as 1.50, a duplicate key, half an emoji or white space, is a byte
// string with the JSON text of the value, under the tag for embedded JSON.

// Tags, as registered with IANA.
const (
	positiveBignum = 2
	negativeBignum = 3
	embeddedJSON   = 262
)

const (
	// Deeper values are embedded, because decoders limit how deep values are nested; usual is 32, which leaves room for what is around.
	nativeDepth = 16
	// Longer arrays and maps are embedded, because decoders limit those as well.
	nativeLength = 100_000
	// Numbers of more digits are embedded.
	nativeDigits = 40
)

// The first byte of an item has its major type in the upper three bits.
const (
	cborUnsigned = 0 << 5
	cborNegative = 1 << 5
	cborBytes    = 2 << 5
	cborText     = 3 << 5
	cborArray    = 4 << 5
	cborMap      = 5 << 5
	cborTag      = 6 << 5
	cborSimple   = 7 << 5

	cborFalse      = cborSimple | 20
	cborTrue       = cborSimple | 21
	cborNull       = cborSimple | 22
	cborFloat16    = cborSimple | 25
	cborFloat64    = cborSimple | 27
	cborIndefinite = 31 // in the lower five bits, for a length
	cborBreak      = cborSimple | 31
)

// MarshalCBOR writes what MarshalJSON writes, as CBOR.
func (s Session) MarshalCBOR() ([]byte, error) { return marshalCBOR(s) }

// UnmarshalCBOR reads what MarshalCBOR writes, and any other CBOR that JSON can express.
func (s *Session) UnmarshalCBOR(data []byte) error { return unmarshalCBOR(data, s) }

func marshalCBOR(document json.Marshaler) ([]byte, error) {
	text, err := document.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return appendCBOR(nil, text, 0), nil
}

func unmarshalCBOR(data []byte, document json.Unmarshaler) error {
	if err := cbor.Wellformed(data); err != nil {
		return fmt.Errorf("session: %w: %w", ErrNotCBOR, err)
	}
	text, err := appendJSON(nil, data)
	if err != nil {
		return err
	}
	return document.UnmarshalJSON(text)
}

// --- writing ---

var shortest = func() cbor.EncMode {
	mode, err := cbor.EncOptions{ShortestFloat: cbor.ShortestFloat16}.EncMode()
	if err != nil {
		panic(err) // unreachable: the options are valid
	}
	return mode
}()

// appendCBOR appends a value that is valid JSON. depth is the number of arrays and maps around it.
func appendCBOR(dst []byte, text json.RawMessage, depth int) []byte {
	if native, ok := appendNative(dst, text, depth); ok {
		return native
	}
	dst = appendHead(dst, cborTag, embeddedJSON)
	dst = appendHead(dst, cborBytes, len(text))
	return append(dst, text...)
}

func appendNative(dst []byte, text json.RawMessage, depth int) ([]byte, bool) {
	switch text[0] {
	case '{':
		return appendMap(dst, text, depth)
	case '[':
		return appendArray(dst, text, depth)
	case '"':
		return appendText(dst, text)
	case 't':
		return append(dst, cborTrue), string(text) == "true"
	case 'f':
		return append(dst, cborFalse), string(text) == "false"
	case 'n':
		return append(dst, cborNull), string(text) == "null"
	default:
		return appendNumber(dst, text)
	}
}

func appendMap(dst []byte, text json.RawMessage, depth int) ([]byte, bool) {
	var members []byte
	keys := map[string]bool{}
	at := 1 // after the brace or the last comma
	_, ok := rawjson.WalkObject(text, 0, func(written []byte, start int) (int, bool) {
		key := string(rawjson.Decode(nil, written))
		lead := append(rawjson.Quote(nil, key), ':')
		asWritten := string(text[at:start]) == string(lead) && utf8.ValidString(key)
		if !asWritten || keys[key] || len(keys) == nativeLength || depth == nativeDepth {
			return start, false
		}
		keys[key] = true
		end, _ := rawjson.SkipValue(text, start, 0)
		members = append(appendHead(members, cborText, len(key)), key...)
		members = appendCBOR(members, text[start:end], depth+1)
		at = end + 1
		return end, true
	})
	if at = max(at, 2); !ok || at != len(text) {
		return nil, false
	}
	return append(appendHead(dst, cborMap, len(keys)), members...), true
}

func appendArray(dst []byte, text json.RawMessage, depth int) ([]byte, bool) {
	var items []byte
	length := 0
	at := 1
	_, ok := rawjson.WalkArray(text, 0, func(start int) (int, bool) {
		if start != at || length == nativeLength || depth == nativeDepth {
			return start, false
		}
		length++
		end, _ := rawjson.SkipValue(text, start, 0)
		items = appendCBOR(items, text[start:end], depth+1)
		at = end + 1
		return end, true
	})
	if at = max(at, 2); !ok || at != len(text) {
		return nil, false
	}
	return append(appendHead(dst, cborArray, length), items...), true
}

func appendText(dst []byte, text json.RawMessage) ([]byte, bool) {
	decoded, ok := stringOf(text)
	if !ok || !bytes.Equal(rawjson.Quote(nil, decoded), text) {
		return nil, false
	}
	return append(appendHead(dst, cborText, len(decoded)), decoded...), true
}

func appendNumber(dst []byte, text json.RawMessage) ([]byte, bool) {
	if len(text) > nativeDigits {
		return nil, false
	}
	var number any
	if whole, ok := new(big.Int).SetString(string(text), 10); ok {
		if whole.String() != string(text) {
			return nil, false
		}
		number = whole
	} else {
		float, err := strconv.ParseFloat(string(text), 64)
		if err != nil || string(floatText(float)) != string(text) {
			return nil, false
		}
		number = float
	}
	item, err := shortest.Marshal(number)
	return append(dst, item...), err == nil
}

// floatText writes a float as JavaScript does, but shows that it is one.
func floatText(float float64) []byte {
	text, err := json.Marshal(float)
	if err == nil && !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return text // nil for what is not a number in JSON
}

// appendHead appends the head of an item: its type and its length, or whatever number goes with it.
func appendHead(dst []byte, major byte, number int) []byte {
	head, err := cbor.Marshal(number) // as an unsigned integer, whose type is 0
	if err != nil {
		panic(err) // unreachable: any integer can be written
	}
	head[0] |= major
	return append(dst, head...)
}

// --- reading ---

// appendJSON appends one item, which is well-formed, as JSON text.
func appendJSON(dst, data []byte) ([]byte, error) {
	switch major := data[0] &^ 31; {
	case major == cborUnsigned || major == cborNegative:
		return appendInteger(dst, data)
	case major == cborText:
		var decoded string
		if err := cbor.Unmarshal(data, &decoded); err != nil {
			return nil, fmt.Errorf("session: %w: %w", ErrNotCBOR, err)
		}
		return rawjson.Quote(dst, decoded), nil
	case major == cborArray:
		return appendItems(dst, data, '[', ']', 1)
	case major == cborMap:
		return appendItems(dst, data, '{', '}', 2)
	case major == cborTag:
		return appendTagged(dst, data)
	case data[0] == cborFalse:
		return append(dst, "false"...), nil
	case data[0] == cborTrue:
		return append(dst, "true"...), nil
	case data[0] == cborNull:
		return append(dst, "null"...), nil
	case cborFloat16 <= data[0] && data[0] <= cborFloat64:
		var float float64
		if cbor.Unmarshal(data, &float) == nil && floatText(float) != nil {
			return append(dst, floatText(float)...), nil
		}
	}
	return nil, notJSON(data)
}

func notJSON(data []byte) error {
	return fmt.Errorf("session: %w: an item beginning with the byte %#x has no form in JSON: write text, finite numbers, true, false, null, arrays and maps",
		ErrNotCBOR, data[0])
}

func appendInteger(dst, data []byte) ([]byte, error) {
	var whole big.Int
	if err := cbor.Unmarshal(data, &whole); err != nil {
		return nil, fmt.Errorf("session: %w: %w", ErrNotCBOR, err)
	}
	return whole.Append(dst, 10), nil
}

// appendItems appends an array, or a map, whose keys and values are items in turn.
func appendItems(dst, data []byte, open, end byte, each int) ([]byte, error) {
	count, rest := readHead(data)
	dst = append(dst, open)
	for i := 0; i != count*each && rest[0] != cborBreak; i++ {
		var item cbor.RawMessage
		var err error
		if rest, err = cbor.UnmarshalFirst(rest, &item); err != nil {
			return nil, fmt.Errorf("session: %w: %w", ErrNotCBOR, err)
		}
		switch {
		case each == 2 && i%2 == 0 && item[0]&^31 != cborText:
			return nil, fmt.Errorf("session: %w: a map has a key that is not text: JSON has no such keys", ErrNotCBOR)
		case i%each == 1:
			dst = append(dst, ':')
		case i > 0:
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(dst, item); err != nil {
			return nil, err
		}
	}
	return append(dst, end), nil
}

// readHead returns the number in the head of an item, -1 for an indefinite length, and what follows the head.
func readHead(data []byte) (int, []byte) {
	if data[0]&31 == cborIndefinite {
		return -1, data[1:]
	}
	head := slices.Concat([]byte{data[0] & 31}, data[1:min(9, len(data))]) // as an unsigned integer
	var number int
	rest, err := cbor.UnmarshalFirst(head, &number)
	if err != nil {
		panic(err) // unreachable: the item is well-formed
	}
	return number, data[len(head)-len(rest):]
}

func appendTagged(dst, data []byte) ([]byte, error) {
	var tagged cbor.RawTag
	if err := cbor.Unmarshal(data, &tagged); err != nil {
		return nil, fmt.Errorf("session: %w: %w", ErrNotCBOR, err)
	}
	switch tagged.Number {
	case embeddedJSON:
		var text []byte
		if cbor.Unmarshal(tagged.Content, &text) != nil || tagged.Content[0]&^31 != cborBytes || !json.Valid(text) {
			return nil, fmt.Errorf("session: %w: tag %d does not hold JSON text: write it as a byte string", ErrNotCBOR, embeddedJSON)
		}
		return append(dst, text...), nil
	case positiveBignum, negativeBignum:
		return appendInteger(dst, data)
	default:
		return nil, notJSON(data)
	}
}
