package session

import (
	"bytes"
	"encoding/json"
)

// stringOf decodes a JSON string; any other value gives false.
func stringOf(value json.RawMessage) (decoded string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return decoded, json.Unmarshal(value, &decoded) == nil
}

// encode is json.Marshal without the escapes for HTML, which documents between programs do not need.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
