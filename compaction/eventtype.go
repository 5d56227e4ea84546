package compaction

import "github.com/pgagui/pgagui/internal/rawjson"

// EventType returns the type of a raw JSON event, decoded; empty when it has none that is a string.
func EventType(payload []byte) string {
	var e event
	if _, ok := e.scan(payload, rawjson.SkipSpace(payload, 0)); !ok || !e.has(need(isString, fieldType)) {
		return ""
	}
	return string(e.decoded(fieldType))
}
