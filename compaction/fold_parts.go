package compaction

import (
	"bytes"

	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// This file reads the messages of lists (MESSAGES_SNAPSHOT, the input of a run) as the official client does.
// agui_internal.message_as_read is the same in SQL.

// ListsAsRead returns an event with the messages of its list as the official client of protocol 1.0 reads them, and the folds keep them;
// any other event as it is. Older clients show a part of protocol 0.x as it is written, and all refuse a member that is null.
func ListsAsRead(event []byte) []byte {
	if isAsRead(event) {
		return event
	}
	switch EventType(event) {
	case "MESSAGES_SNAPSHOT":
		return withMemberAsRead(event, "messages", listAsRead)
	case "RUN_STARTED":
		return withMemberAsRead(event, "input", func(input []byte) []byte { return withMemberAsRead(input, "messages", listAsRead) })
	}
	return event
}

// MessageAsRead returns a message of a list as the official client of protocol 1.0 reads it.
func MessageAsRead(message []byte) []byte {
	read, _ := asRead(message)
	return read
}

func withMemberAsRead(of []byte, name string, read func(value []byte) []byte) []byte {
	object, _ := rawjson.ParseObject(of)
	before := object.Get(name)
	after := read(before)
	if bytes.Equal(before, after) {
		return of
	}
	object.Set(name, after)
	return object.Text()
}

func listAsRead(list []byte) []byte {
	array, _ := rawjson.ParseArray(list)
	isChanged := false
	for i := range array.Members {
		if message := array.Members[i].Value; message[0] == '{' {
			read, isRead := asRead(message)
			array.Members[i].Value, isChanged = read, isChanged || isRead
		}
	}
	if !isChanged {
		return list
	}
	return array.Text()
}

// isAsRead is a fast test of a text: true means that the client reads all messages in it as they are written.
func isAsRead(text []byte) bool {
	for _, sign := range []string{"null", "binary", `\u006`, `\u007`} { // the escapes of letters
		if bytes.Contains(text, []byte(sign)) {
			return false
		}
	}
	return true
}

// optionalMembers are members of messages that read as absent where they are null. The content is one for an assistant only.
var optionalMembers = []string{"subagentRunId", "content", "toolCalls", "name", "encryptedValue", "metadata"}

// asRead returns a message as the client reads it, as a fold keeps it; false, and the message as it is written, if that is how the
// client reads it.
func asRead(message []byte) ([]byte, bool) {
	if isAsRead(message) {
		return message, false
	}
	changed := map[string][]byte{} // nil: without it
	if parts := partsAsRead(rawjson.MemberOf(message, "content")); parts != nil {
		changed["content"] = parts
	}
	for _, name := range optionalMembers {
		if string(rawjson.MemberOf(message, name)) == "null" && (name != "content" || isText(rawjson.MemberOf(message, "role"), "assistant")) {
			changed[name] = nil
		}
	}
	if len(changed) == 0 {
		return message, false
	}
	tree := jsontree.Open(jsontree.Kept(message), nil).(*jsontree.Object)
	for name, value := range changed {
		if value == nil {
			tree.Delete(name)
		} else {
			tree.Set(name, jsontree.Kept(value))
		}
	}
	return jsontree.JSON(tree), true
}

// partsAsRead returns the content of a message with its parts as the client reads them; nil: they are as it reads them. A part of type
// "binary", of protocol 0.x, becomes an image, audio, video or document, or goes if the list has that one, too. One that has
// neither data nor a URL stays. Metadata of such media that is null reads as absent.
func partsAsRead(content []byte) []byte {
	if len(content) == 0 || content[0] != '[' {
		return nil
	}
	read, isChanged := []byte{'['}, false
	for part := range rawjson.Elements(content) {
		if part[0] == '{' {
			switch kind := rawjson.MemberOf(part, "type"); {
			case isText(kind, "binary"):
				if media := mediaOf(part); media != nil {
					isChanged = true
					if media.isIn(content) {
						continue
					}
					part = media.json()
				}
			case isMedia(kind) && string(rawjson.MemberOf(part, "metadata")) == "null":
				part, isChanged = without(jsontree.Kept(part), "metadata"), true
			}
		}
		if len(read) > 1 {
			read = append(read, ',')
		}
		read = append(read, part...)
	}
	if !isChanged {
		return nil
	}
	return append(read, ']')
}

// media is a part that a binary part becomes: strings as they are written, with their quotes. Without a filename it is nil.
type media struct {
	kind, source              string
	value, mimeType, filename []byte
}

func mediaOf(binary []byte) *media {
	m := &media{kind: "document", mimeType: rawjson.MemberOf(binary, "mimeType")}
	if len(m.mimeType) == 0 || m.mimeType[0] != '"' {
		return nil
	}
	for _, kind := range []string{"image", "audio", "video"} {
		if bytes.HasPrefix(rawjson.Decode(nil, m.mimeType[1:len(m.mimeType)-1]), []byte(kind+"/")) {
			m.kind = kind
		}
	}
	if filename := rawjson.MemberOf(binary, "filename"); isFilled(filename) {
		m.filename = filename
	}
	for _, source := range []string{"data", "url"} {
		if value := rawjson.MemberOf(binary, source); isFilled(value) {
			m.source, m.value = source, value
			return m
		}
	}
	return nil
}

func (m *media) json() []byte {
	part := append([]byte(`{"type":"`), m.kind...)
	part = append(append(part, `","source":{"type":"`...), m.source...)
	part = append(append(part, `","value":`...), m.value...)
	part = append(append(part, `,"mimeType":`...), m.mimeType...)
	part = append(part, '}')
	if m.filename != nil {
		part = append(append(append(part, `,"metadata":{"filename":`...), m.filename...), '}')
	}
	return append(part, '}')
}

// isIn reports whether a list has the part, with the filename.
func (m *media) isIn(content []byte) bool {
	for part := range rawjson.Elements(content) {
		if part[0] != '{' || !isText(rawjson.MemberOf(part, "type"), m.kind) {
			continue
		}
		source, metadata := rawjson.MemberOf(part, "source"), rawjson.MemberOf(part, "metadata")
		if len(source) == 0 || source[0] != '{' || !isText(rawjson.MemberOf(source, "type"), m.source) ||
			!sameText(rawjson.MemberOf(source, "value"), m.value) || !sameText(rawjson.MemberOf(source, "mimeType"), m.mimeType) {
			continue
		}
		if m.filename == nil || len(metadata) > 0 && metadata[0] == '{' && sameText(rawjson.MemberOf(metadata, "filename"), m.filename) {
			return true
		}
	}
	return false
}

func isMedia(kind []byte) bool {
	return isText(kind, "image") || isText(kind, "audio") || isText(kind, "video") || isText(kind, "document")
}

// isFilled reports whether a value is a string with text.
func isFilled(value []byte) bool { return len(value) > len(`""`) && value[0] == '"' }

func isText(value []byte, text string) bool {
	return len(value) > 1 && value[0] == '"' && rawjson.SameKey(value[1:len(value)-1], text)
}

func sameText(a, b []byte) bool {
	return len(a) > 1 && a[0] == '"' && rawjson.SameString(a[1:len(a)-1], b[1:len(b)-1])
}
