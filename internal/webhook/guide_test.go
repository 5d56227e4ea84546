package webhook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// guideCase is a request that an endpoint gets, and whether it is to believe it.
type guideCase struct {
	Name, Secret, ID, Timestamp, Signature, Body string
	Now                                          int64 // in seconds
	IsRight                                      bool
}

// Programs that call what the guide has, and print a JSON array of booleans.
const (
	guideInGo = `package main

import (
	"encoding/json"
	"net/http"
	"os"
	"time"
)

func main() {
	var cases []struct {
		Secret, ID, Timestamp, Signature, Body string
		Now                                    int64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	var answers []bool
	for _, c := range cases {
		header := http.Header{}
		header.Set("webhook-id", c.ID)
		header.Set("webhook-timestamp", c.Timestamp)
		header.Set("webhook-signature", c.Signature)
		answers = append(answers, verify(c.Secret, header, []byte(c.Body), time.Unix(c.Now, 0)) == nil)
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
`
	guideInNode = `
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";

const answers = JSON.parse(readFileSync(0)).map((c) => {
  const headers = { "webhook-id": c.ID, "webhook-timestamp": c.Timestamp };
  if (c.Signature) headers["webhook-signature"] = c.Signature;
  try {
    verify(c.Secret, headers, Buffer.from(c.Body), c.Now * 1000);
    return true;
  } catch {
    return false;
  }
});
console.log(JSON.stringify(answers));
`
)

// What the guide shows for Go and Node.js believes the example of the specification and what Sign signs, and nothing else.
func TestGuideVerifiesSignatures(t *testing.T) {
	t.Parallel()
	const right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	signed := must.Have(Sign(knownSecret, "evt_1", time.Unix(1_800_000_000, 0), []byte("ü\n")))(t)
	known := guideCase{Secret: knownSecret, ID: knownID, Timestamp: "1614265330", Signature: right, Body: knownBody, Now: 1614265330}
	with := func(name string, isRight bool, change func(*guideCase)) guideCase {
		changed := known
		changed.Name, changed.IsRight = name, isRight
		change(&changed)
		return changed
	}
	cases := []guideCase{
		with("the example of the specification", true, func(*guideCase) {}),
		with("ours", true, func(c *guideCase) {
			c.ID, c.Timestamp, c.Now, c.Body, c.Signature = "evt_1", "1800000000", 1_800_000_060, "ü\n", signed
		}),
		with("several signatures", true, func(c *guideCase) { c.Signature = "v1a,AAAA v1,AAAA " + right }),
		with("after 4 minutes", true, func(c *guideCase) { c.Now += 240 }),
		with("after 6 minutes", false, func(c *guideCase) { c.Now += 360 }),
		with("from the future", false, func(c *guideCase) { c.Now -= 360 }),
		with("another body", false, func(c *guideCase) { c.Body += " " }),
		with("another id", false, func(c *guideCase) { c.ID += "x" }),
		with("another time", false, func(c *guideCase) { c.Timestamp = "1614265331" }),
		with("another secret", false, func(c *guideCase) { c.Secret = "whsec_AfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }),
		with("another version", false, func(c *guideCase) { c.Signature = "v2," + right[3:] }),
		with("no signature", false, func(c *guideCase) { c.Signature = "" }),
		with("half of a signature", false, func(c *guideCase) { c.Signature = right[:20] }),
		with("no time", false, func(c *guideCase) { c.Timestamp = "" }),
		with("no number", false, func(c *guideCase) { c.Timestamp = "soon" }),
	}
	files := map[string]string{"main.go": guideInGo, "main.mjs": guideInNode}
	for _, name := range []string{"verify.go", "verify.mjs"} {
		files[name] = string(testfile.Read(t, "../../examples/webhooks/"+name))
	}
	folder := t.TempDir()
	for name, text := range files {
		testfile.Write(t, filepath.Join(folder, name), []byte(text))
	}
	for language, program := range map[string][]string{"Go": {"go", "run", "main.go", "verify.go"}, "Node.js": {"node", "main.mjs"}} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program[0]); err != nil {
				testneeds.Skip(t, testneeds.Node, "%s is not installed", program[0])
			}
			command := exec.CommandContext(t.Context(), program[0], program[1:]...)
			command.Dir, command.Env, command.Stderr = folder, append(os.Environ(), "GOWORK=off"), os.Stderr
			input := must.Have(command.StdinPipe())(t)
			go func() {
				defer input.Close()
				_ = json.NewEncoder(input).Encode(cases)
			}()
			output := must.Have(command.Output())(t)
			var got, want []bool
			for _, c := range cases {
				want = append(want, c.IsRight)
			}
			if err := json.Unmarshal(output, &got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, want %v (%v): %s", got, want, err, fmt.Sprint(cases))
			}
		})
	}
}
