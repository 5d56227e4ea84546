// Package eventjson reads members of events, which are JSON text.
package eventjson

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pgagui/pgagui/compaction"
)

// Quote returns a text as a JSON string.
func Quote(text string) []byte {
	encoded, _ := json.Marshal(text) // a string always has an encoding
	return encoded
}

// TextMember returns a string member of an event, or "" if there is none.
func TextMember(event []byte, name string) (text string) {
	if json.Unmarshal(Member(event, name), &text) != nil {
		return ""
	}
	return text
}

// HasObject reports whether an event has a member that is an object.
func HasObject(event []byte, name string) bool {
	return bytes.HasPrefix(Member(event, name), []byte("{"))
}

// Member returns the value of a member of a JSON object, or nil if there is none.
func Member(object []byte, name string) (value []byte) {
	for key, found := range compaction.Members(object) {
		if key == name {
			value = found
		}
	}
	return value
}

// TextOf returns the text of the content of a message, which is a string or a list of parts.
func TextOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, part := range parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, " ")
}
