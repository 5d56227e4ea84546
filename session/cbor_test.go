package session_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/session"
)

// What CBOR has a way to say is said so that any decoder understands it.
func TestCBORIsNativeWhereItCanBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // in the diagnostic notation of RFC 8949
		`{"b":1,"a":[true,false,null]}`: `{"b": 1, "a": [true, false, null]}`,
		`""`:                            `""`,
		`"é😀\u0000\n"`:                  `"\u00e9\ud83d\ude00\u0000\n"`,
		`{}`:                            `{}`,
		`[]`:                            `[]`,
		`0`:                             `0`,
		`-1`:                            `-1`,
		`18446744073709551615`:          `18446744073709551615`,
		`18446744073709551616`:          `18446744073709551616`,
		`-18446744073709551617`:         `-18446744073709551617`,
		`1.0`:                           `1.0_1`,
		`-0.0`:                          `-0.0_1`,
		`1.5`:                           `1.5_1`,
		`0.1`:                           `0.1_3`,
		`1e+21`:                         `1.0e+21_3`,

		`-0`:             "262('-0')",
		`1.50`:           "262('1.50')",
		`1E5`:            "262('1E5')",
		`1e400`:          "262('1e400')",
		`"\ud83d"`:       `262('"\\ud83d"')`,
		`"\u00e9"`:       `262('"\\u00e9"')`,
		`"\u003c"`:       `262('"\\u003c"')`,
		`{"a":1,"a":2}`:  `262('{"a":1,"a":2}')`,
		`{"\u0061":1}`:   `262('{"\\u0061":1}')`,
		`[ 1]`:           "262('[ 1]')",
		`{"a": 1}`:       `262('{"a": 1}')`,
		`[1.50,{"b":1}]`: `[262('1.50'), {"b": 1}]`,
		`{ }`:            "262('{ }')",
	} {
		s := session.New("t")
		must.Do(t, s.SetState("k", json.RawMessage(text)))
		got := must.Have(notation.Diagnose(must.Have(cbor.Marshal(s))(t)))(t)
		wantText(t, got, `{"threadId": "t", "runId": null, "state": {"k": `+want+`}, "versions": {}}`)
	}
}

var notation = func() cbor.DiagMode {
	mode, err := cbor.DiagOptions{ByteStringText: true, FloatPrecisionIndicator: true}.DiagMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

func TestDeepAndLongValuesPassTheLimitsOfDecoders(t *testing.T) {
	t.Parallel()
	for _, state := range []string{
		strings.Repeat(`{"a":[`, 4000) + "1" + strings.Repeat(`]}`, 4000),
		"[" + strings.Repeat("1,", 200_000) + "1]",
	} {
		text := `{"stateBag":{"k":` + state + `}}`
		var again []session.Session
		must.Do(t, cbor.Unmarshal(must.Have(cbor.Marshal([]session.Session{read(t, text)}))(t), &again))
		wantText(t, written(t, again[0]), text)
	}
}

func TestCBOROfOthersIsRead(t *testing.T) {
	t.Parallel()
	for _, state := range []struct{ data, want string }{
		{"9f0102ff", "[1,2]"},                          // indefinite length
		{"bf616101616202ff", `{"a":1,"b":2}`},          //
		{"7f616161626163ff", `"abc"`},                  //
		{"fb3ff8000000000000", "1.5"},                  // a float that is longer than it need be
		{"f93c00", "1.0"},                              //
		{"1a00000001", "1"},                            // an integer that is longer than it need be
		{"d9010647" + "207b2261223a7d", ""},            // embedded JSON that is none
		{"4161", ""},                                   // a byte string
		{"f97e00", ""},                                 // NaN
		{"f97c00", ""},                                 // infinity
		{"f7", ""},                                     // undefined
		{"c11a514b67b0", ""},                           // a date
		{"a10102", ""},                                 // a key that is no text
		{"f8ff", ""},                                   // a simple value
		{"d90106a0", ""},                               // embedded JSON that is no byte string
		{"c24100", "0"},                                // a bignum that is small
		{"d9010644" + "5b20315d", "[ 1]"},              // embedded JSON
		{"d90106" + "5f42" + "5b3141" + "5dff", "[1]"}, // in two pieces
	} {
		data := must.Have(hex.DecodeString("a1" + "687374617465426167" + "a1" + "616b" + state.data))(t)
		var s session.Session
		err := cbor.Unmarshal(data, &s)
		switch {
		case state.want == "" && !errors.Is(err, session.ErrNotCBOR):
			t.Errorf("%s: %v", state.data, err)
		case state.want != "":
			must.Do(t, err)
			wantText(t, written(t, s), `{"stateBag":{"k":`+state.want+`}}`)
		}
	}
}

func TestSizeOfCBOR(t *testing.T) {
	t.Parallel()
	for _, name := range shapes {
		text := golden(t, name)
		for form, text := range map[string][]byte{"as it is": text, "compact": compact(t, text)} {
			data := must.Have(cbor.Marshal(read(t, string(text))))(t)
			t.Logf("%s, %s: %d bytes of JSON, %d of CBOR (%+.1f %%)", name, form, len(text), len(data), 100*(float64(len(data))/float64(len(text))-1))
			if len(data) > len(text)+8 {
				t.Errorf("%s, %s: %d bytes of JSON became %d of CBOR", name, form, len(text), len(data))
			}
		}
	}
}

func FuzzCBOR(f *testing.F) {
	for _, name := range shapes {
		f.Add(must.Have(cbor.Marshal(read(f, string(golden(f, name)))))(f))
	}
	f.Add([]byte("\xbf\x68stateBag\xbf\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s session.Session
		if s.UnmarshalCBOR(data) != nil {
			return
		}
		text := written(t, s)
		var again session.Session
		must.Do(t, again.UnmarshalCBOR(must.Have(s.MarshalCBOR())(t)))
		wantText(t, written(t, again), text)
	})
}
