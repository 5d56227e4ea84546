package rawjson

import "bytes"

// This file reads the messages of lists (MESSAGES_SNAPSHOT, the input of a run) as the clients do. agui_internal.message_as_read
// is the same in SQL.

// optionalMembers are members of messages that read as absent where they are null.
var optionalMembers = []string{"subagentRunId", "content", "toolCalls", "name", "encryptedValue", "metadata"}

// IsAsRead is a fast test of the text of a message, or of its content: true means that the client reads it as it is written.
func IsAsRead(message []byte) bool {
	for _, sign := range []string{"null", "binary", `\u006`, `\u007`} { // the escapes of letters
		if bytes.Contains(message, []byte(sign)) {
			return false
		}
	}
	return true
}

// NullMembers returns the members of a message that are null and read as absent. The content is one for an assistant only.
func NullMembers(message []byte) (names []string) {
	for _, name := range optionalMembers {
		if string(MemberOf(message, name)) == "null" && (name != "content" || isText(MemberOf(message, "role"), "assistant")) {
			names = append(names, name)
		}
	}
	return names
}

// Parts returns the content of a message with its parts as the client reads them; false: they are as it reads them. A part of type
// "binary", of protocol 0.x, becomes an image, audio, video or document, or goes if the list has that one, too. One that has
// neither data nor a URL stays. Metadata of such media that is null reads as absent; without removes a member of an object.
func Parts(content []byte, without func(part []byte, name string) []byte) ([]byte, bool) {
	if len(content) == 0 || content[0] != '[' {
		return content, false
	}
	read, isChanged := []byte{'['}, false
	for part := range Elements(content) {
		if part[0] == '{' {
			switch kind := MemberOf(part, "type"); {
			case isText(kind, "binary"):
				if media := mediaOf(part); media != nil {
					isChanged = true
					if media.isIn(content) {
						continue
					}
					part = media.json()
				}
			case isMedia(kind) && string(MemberOf(part, "metadata")) == "null":
				part, isChanged = without(part, "metadata"), true
			}
		}
		if len(read) > 1 {
			read = append(read, ',')
		}
		read = append(read, part...)
	}
	if !isChanged {
		return content, false
	}
	return append(read, ']'), true
}

// media is a part that a binary part becomes: strings as they are written, with their quotes. Without a filename it is nil.
type media struct {
	kind, source              string
	value, mimeType, filename []byte
}

func mediaOf(binary []byte) *media {
	m := &media{kind: "document", mimeType: MemberOf(binary, "mimeType")}
	if len(m.mimeType) == 0 || m.mimeType[0] != '"' {
		return nil
	}
	for _, kind := range []string{"image", "audio", "video"} {
		if bytes.HasPrefix(Decode(nil, m.mimeType[1:len(m.mimeType)-1]), []byte(kind+"/")) {
			m.kind = kind
		}
	}
	if filename := MemberOf(binary, "filename"); isFilled(filename) {
		m.filename = filename
	}
	for _, source := range []string{"data", "url"} {
		if value := MemberOf(binary, source); isFilled(value) {
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
	for part := range Elements(content) {
		if part[0] != '{' || !isText(MemberOf(part, "type"), m.kind) {
			continue
		}
		source, metadata := MemberOf(part, "source"), MemberOf(part, "metadata")
		if len(source) == 0 || source[0] != '{' || !isText(MemberOf(source, "type"), m.source) ||
			!sameText(MemberOf(source, "value"), m.value) || !sameText(MemberOf(source, "mimeType"), m.mimeType) {
			continue
		}
		if m.filename == nil || len(metadata) > 0 && metadata[0] == '{' && sameText(MemberOf(metadata, "filename"), m.filename) {
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
	return len(value) > 1 && value[0] == '"' && SameKey(value[1:len(value)-1], text)
}

func sameText(a, b []byte) bool {
	return len(a) > 1 && a[0] == '"' && SameString(a[1:len(a)-1], b[1:len(b)-1])
}
