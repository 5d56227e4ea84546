package pgagui_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

func TestAttachmentsOfAConversation(t *testing.T) {
	t.Parallel()
	store := pgagui.New(testdb.Pool(t), nil)
	picture := strings.Repeat("\x00\xff picture", 1000) // base64 of it has + and /
	standard := base64.StdEncoding.EncodeToString([]byte(picture))
	question := fmt.Sprintf(`{"id":"q1","role":"user","content":[
		{"type":"text","text":"see"},
		{"type":"image","source":{"type":"data","value":"%s","mimeType":"image/png"},"metadata":{"filename":"ä.png"}},
		{"type":"image","source":{"type":"url","value":"https://example.com/a.png"}},
		{"type":"document","source":{"type":"data","value":"%s","mimeType":"application/pdf"}},
		{"type":"binary","mimeType":"text/plain","filename":"\\u0000 odd","data":"%s"}]}`,
		strings.ReplaceAll(standard, "/", `\/`),
		base64.RawURLEncoding.EncodeToString([]byte("%PDF?>~")),
		base64.StdEncoding.EncodeToString([]byte("lines"))[:4]+`\n`+base64.StdEncoding.EncodeToString([]byte("lines"))[4:])
	appendRun := func(run, input string, more ...string) {
		t.Helper()
		events := []json.RawMessage{json.RawMessage(`{"type":"RUN_STARTED"}`)}
		for _, event := range more {
			events = append(events, json.RawMessage(event))
		}
		events = append(events, json.RawMessage(`{"type":"RUN_FINISHED"}`))
		mustAppend(t, store, "t", run, events, pgagui.AppendOptions{AfterSeq: new(int64(0)), Input: []byte(input)})
	}
	appendRun("1", `{"messages":[`+question+`]}`)
	appendRun("2", `{"messages":[`+question+`,{"id":"q2","role":"user","content":"only text"}]}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"w","role":"tool","toolCallId":"c","content":[{"type":"audio","source":{"type":"data","value":"not base64!","mimeType":"audio/wav"}},7]}]}`)
	want := []pgagui.MessageAttachment{
		{N: 1, MessageID: "q1", Type: "image", MIMEType: "image/png", Filename: "ä.png", Bytes: int64(len(picture))},
		{N: 2, MessageID: "q1", Type: "document", MIMEType: "application/pdf", Bytes: 7},
		{N: 3, MessageID: "q1", Type: "document", MIMEType: "text/plain", Filename: `\u0000 odd`, Bytes: 5},
	}
	got := must.Have(store.Attachments(t.Context(), "t", pgagui.At{RunID: "1"}))(t)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("attachments %+v, want %+v", got, want)
	}
	for n, data := range []string{picture, "%PDF?>~", "lines"} {
		attachment, got, err := store.AttachmentData(t.Context(), "t", n+1, pgagui.At{RunID: "1"})
		must.Do(t, err)
		if string(got) != data || attachment != want[n] {
			t.Errorf("attachment %d is %+v with %d bytes, want %+v", n+1, attachment, len(got), want[n])
		}
	}
	if head, err := store.Attachments(t.Context(), "t", pgagui.At{}); err != nil || len(head) != 1 || head[0].Type != "audio" || head[0].MessageID != "w" {
		t.Errorf("the head has %+v, %v", head, err)
	}
	for n, at := range map[int]pgagui.At{0: {RunID: "1"}, 4: {RunID: "1"}, -1: {}, 1: {}} {
		if _, _, err := store.AttachmentData(t.Context(), "t", n, at); !errors.Is(err, pgagui.ErrUnknownAttachment) || !errors.Is(err, pgagui.ErrNotFound) {
			t.Errorf("attachment %d: %v", n, err)
		}
	}
	if _, err := store.Attachments(t.Context(), "none", pgagui.At{}); !errors.Is(err, pgagui.ErrUnknownThread) {
		t.Errorf("of an unknown thread: %v", err)
	}
}
