package session_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

func TestAClientNeverSeesThePrivatePartOfASnapshot(t *testing.T) {
	t.Parallel()
	text := string(golden(t, "thread_snapshot.json"))
	var stored session.StoredThreadSnapshot
	must.Do(t, json.Unmarshal([]byte(text), &stored))
	var plain session.ThreadSnapshot
	must.Do(t, json.Unmarshal([]byte(text), &plain))
	want := text[:strings.Index(text, `,"session_state"`)] + "}"

	wantText(t, string(must.Have(plain.MarshalJSON())(t)), want)
	for _, snapshot := range []session.ThreadSnapshot{plain, stored.ThreadSnapshot} {
		// However it is written: in lists, behind pointers, as CBOR.
		for _, in := range []any{snapshot, &snapshot, []session.ThreadSnapshot{snapshot}, map[string]any{"s": snapshot}, struct{ S *session.ThreadSnapshot }{&snapshot}} {
			for format, data := range map[string][]byte{"JSON": must.Have(json.Marshal(in))(t), "CBOR": must.Have(cbor.Marshal(in))(t)} {
				for _, private := range []string{"session_state", "secret prompt", "resp_123", "saved_by"} {
					if strings.Contains(string(data), private) {
						t.Errorf("%s of a %T has %s", format, in, private)
					}
				}
				if !strings.Contains(string(data), "approval_required") {
					t.Errorf("%s of a %T has no interrupt", format, in)
				}
			}
		}
	}

	// Not even when the key is spelled in another way.
	must.Do(t, json.Unmarshal([]byte(strings.Replace(text, "session_state", `session\u005fstate`, 1)), &plain))
	wantText(t, string(must.Have(plain.MarshalJSON())(t)), want)
	if plain.SessionState == nil {
		t.Fatal("the private part is lost")
	}
}

func TestSnapshotsAreStoredWhole(t *testing.T) {
	t.Parallel()
	text := golden(t, "thread_snapshot.json")
	var snapshot session.StoredThreadSnapshot
	must.Do(t, json.Unmarshal(text, &snapshot))
	wantBytes(t, must.Have(snapshot.MarshalJSON())(t), text)
	var again []session.StoredThreadSnapshot
	must.Do(t, cbor.Unmarshal(must.Have(cbor.Marshal([]session.StoredThreadSnapshot{snapshot}))(t), &again))
	wantBytes(t, must.Have(again[0].MarshalJSON())(t), text)

	snapshot.Interrupt = nil
	snapshot.State = json.RawMessage(`null`)
	want := string(text)
	want = strings.Replace(want, `{"seats":12345678901234567890,"price":1.0,"note":"\u0000"}`, `null`, 1)
	from, to := strings.Index(want, `,"interrupt"`), strings.Index(want, `,"session_state"`)
	wantText(t, string(must.Have(snapshot.MarshalJSON())(t)), want[:from]+want[to:])
}

func TestNewSnapshots(t *testing.T) {
	t.Parallel()
	snapshot := session.StoredThreadSnapshot{ThreadSnapshot: session.ThreadSnapshot{State: json.RawMessage(`{"a":1.0}`), SessionState: json.RawMessage(`{}`)}}
	wantText(t, string(must.Have(snapshot.MarshalJSON())(t)), `{"messages":[],"state":{"a":1.0},"session_state":{}}`)
	wantText(t, string(must.Have(snapshot.ThreadSnapshot.MarshalJSON())(t)), `{"messages":[],"state":{"a":1.0}}`)
	snapshot.State = json.RawMessage(`{`)
	if _, err := snapshot.MarshalJSON(); !errors.Is(err, session.ErrInvalidSnapshot) {
		t.Fatal(err)
	}
	for _, text := range []string{`{}`, `[]`, `{"messages":{}}`, `{"messages":[]`} {
		if err := new(session.ThreadSnapshot).UnmarshalJSON([]byte(text)); !errors.Is(err, session.ErrInvalidSnapshot) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
