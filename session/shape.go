package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pgagui/pgagui/internal/rawjson"
)

// A shape is how documents of one origin name what a session consists of.
type shape struct {
	states        string // the member that holds the states by their keys
	id            string // the member for Session.ID; "" where the shape has none
	runID         string
	serviceID     string
	versions      string
	discriminator string // the member by which a new state says its type
}

var (
	pgaguiShape = shape{states: "state", id: "threadId", runID: "runId", versions: "versions", discriminator: "$type"}
	dotnetShape = shape{states: "stateBag", serviceID: "conversationId", discriminator: "$type"}
	pythonShape = shape{states: "state", id: "session_id", serviceID: "service_session_id", discriminator: "type"}
)

// tellingMembers identify the shape of a document: the first that it has.
var tellingMembers = []struct {
	key   string
	shape *shape
}{
	{"stateBag", &dotnetShape},
	{"session_id", &pythonShape},
	{"threadId", &pgaguiShape},
	{"conversationId", &dotnetShape},
}

// newDocument is the document of a session that was not read from one. It has empty versions, because it expects
// that nothing is stored yet.
const newDocument = `{"threadId":"","runId":null,"state":{},"versions":{}}`

func shapeOf(document rawjson.Object) (*shape, error) {
	for _, telling := range tellingMembers {
		if document.Get(telling.key) != nil {
			return telling.shape, nil
		}
	}
	return nil, fmt.Errorf("session: %w: it has the members %q, but none of threadId, session_id, stateBag, conversationId: give the document of a session",
		ErrUnknownShape, document.Keys())
}

// fields are the exported fields of a session.
type fields struct {
	id, runID, serviceID string
	versions             map[string]int64
}

// read takes the fields out of a document. A field whose member is missing, or of another type, is empty.
func (sh *shape) read(document rawjson.Object) fields {
	text := func(key string) string {
		if key == "" { // the shape has no such field, though the document may have such a member
			return ""
		}
		s, _ := stringOf(document.Get(key))
		return s
	}
	f := fields{id: text(sh.id), runID: text(sh.runID), serviceID: text(sh.serviceID)}
	if versions := document.Get(sh.versions); sh.versions != "" && versions != nil && json.Unmarshal(versions, &f.versions) != nil {
		f.versions = nil
	}
	return f
}

// write puts the fields that changed into the document that they were read from.
func (sh *shape) write(document *rawjson.Object, was, is fields) error {
	for _, field := range []struct {
		name, key, was, is string
	}{
		{"ID", sh.id, was.id, is.id},
		{"RunID", sh.runID, was.runID, is.runID},
		{"ServiceID", sh.serviceID, was.serviceID, is.serviceID},
	} {
		switch {
		case field.is == field.was:
			continue
		case field.key == "":
			return fmt.Errorf("session: %w: %s is %q, but a document with %s cannot hold it: leave it empty", ErrNoField, field.name, field.is, sh.states)
		case field.is == "" && field.name != "ID":
			document.Set(field.key, json.RawMessage("null"))
		default:
			text, err := encode(field.is)
			if err != nil {
				return err
			}
			document.Set(field.key, text)
		}
	}
	if maps.Equal(was.versions, is.versions) {
		return nil
	}
	if sh.versions == "" {
		return fmt.Errorf("session: %w: Versions is set, but a document with %s cannot hold it: leave it empty", ErrNoField, sh.states)
	}
	document.Set(sh.versions, merge(document.Get(sh.versions), versionsText(was.versions), versionsText(is.versions)))
	return nil
}

func versionsText(versions map[string]int64) json.RawMessage {
	text := rawjson.NewObject()
	for _, key := range slices.Sorted(maps.Keys(versions)) {
		text.Add(key, strconv.AppendInt(nil, versions[key], 10))
	}
	return text.Text()
}
