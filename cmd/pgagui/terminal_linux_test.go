package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/pgagui/pgagui/internal/testdb"
)

// runOnTerminal runs a command whose results and messages go to a terminal, and returns what the
// terminal receives.
func (c commandLine) runOnTerminal(arguments ...string) (code int, shown string) {
	c.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	// The terminal must not translate line ends.
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, mode)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	all := make(chan string)
	go func() {
		var text bytes.Buffer
		_, _ = io.Copy(&text, master) // returns an error when the other end is closed
		all <- text.String()
	}()
	code = run(c.t.Context(), append(arguments, "--database-url", c.databaseURL), strings.NewReader(""), terminal, terminal)
	terminal.Close()
	return code, <-all
}

// wicked contains sequences that set colors and titles, overwrite text and change its direction.
const wicked = "a\x1b]0;pwned\x07\x1b[35mb\u009b31mc\u202ed\x7fe\rf\bg"

// ownColor matches the colors of log and show, which do not use magenta.
var ownColor = regexp.MustCompile(`\x1b\[(?:[012];?)?(?:3[12346])?m`)

func TestNothingThatOthersWroteActsOnTheTerminal(t *testing.T) {
	commands := newCommandLine(t)
	pool := testdb.Connect(t, commands.databaseURL)
	jsonOf := func(text string) string { return string(jsonString(text)) }
	// JSON requires escapes only for C0, and allows line ends between tokens.
	events := `[{"type":"RUN_STARTED","input":{"messages":[{"id":"u","role":"user","content":` + jsonOf(wicked) + `}]}},` + "\r" +
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":` + jsonOf(wicked) + `,"role":"assistant","delta":` + jsonOf(wicked) + `},` +
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":` + jsonOf(wicked) + `,"delta":` + jsonOf(`{"`+wicked+`":"`+wicked) + `},` +
		`{"type":"ACTIVITY_SNAPSHOT","messageId":"p","activityType":` + jsonOf(wicked) + `,"content":{"x":` + jsonOf(wicked) + `}},` +
		`{"type":` + jsonOf(wicked) + `,"\u009b31m":1},` +
		`{"type":"STATE_SNAPSHOT","snapshot":{` + jsonOf(wicked) + `:` + jsonOf(wicked) + `}}`
	for _, scope := range []string{"", wicked} {
		for _, step := range []struct {
			statement string
			arguments []any
		}{
			{`select agui.append($1, $2, $3, scope => $4)`, []any{wicked, wicked, events + `,{"type":"RUN_FINISHED"}]`, scope}},
			{`select agui.append($1, $2, $3, scope => $4)`, []any{wicked, wicked + "2", events + `]`, scope}},
			{`select agui.request_stop($1, reason => $2, scope => $3)`, []any{wicked, wicked, scope}},
			{`select agui.set_thread($1, title => $2, agent => $2, metadata => $3, scope => $4)`, []any{wicked, wicked, `{"x":` + jsonOf(wicked) + `}`, scope}},
			{`select agui.save_session_state($1, $1, $2, $1, scope => $3)`, []any{wicked, `{"x":` + jsonOf(wicked) + "}\r", scope}},
			{`select agui.append($1, $2, $3, scope => $4)`, []any{wicked + "cut", wicked, events + `]`, scope}},
			{`select agui.abandon($1, $2, reason => $3, scope => $4)`, []any{wicked + "cut", wicked, wicked, scope}},
		} {
			if _, err := pool.Exec(t.Context(), step.statement, step.arguments...); err != nil {
				t.Fatalf("%s: %v", step.statement, err)
			}
		}
	}
	file := writeFile(t, "more.ndjson", `{"type":"RUN_STARTED","threadId":`+jsonOf(wicked)+`,"runId":`+jsonOf(wicked+"3")+`}`, `{"type":"RUN_STARTED","runId":"x"`)
	for _, arguments := range [][]string{
		{"export", wicked}, {"export", wicked, "--compact", "stream"}, {"export", wicked, "--null"}, {"export", "no" + wicked}, {"export", wicked, "--run", "no" + wicked},
		{"follow", wicked, "--run", wicked}, {"follow", wicked, "--run", wicked, "--json"},
		{"history", wicked}, {"history", wicked, "--json"}, {"log", wicked}, {"log", wicked, "--graph"}, {"log", wicked, "--json"},
		{"branches", wicked}, {"show", wicked}, {"show", wicked, "--full"}, {"show", wicked, "--json"}, {"restore", wicked}, {"restore", wicked, "--json"},
		{"status", wicked}, {"status", wicked, "--json"}, {"status", wicked + "cut"}, {"stop", "no" + wicked},
		{"threads"}, {"threads", "--json"}, {"threads", "set", "no" + wicked, "--title", wicked}, {"threads", "--scope", wicked},
		{"session", "ls", wicked, "--run", wicked}, {"session", "get", wicked, wicked, "--run", wicked}, {"session", "get", wicked, "--run", wicked},
		{"session", "get", wicked, wicked + "no"}, {"session", "put", wicked, wicked, file},
		{"import", file}, {"import", file + wicked}, {"import", "--scope", wicked, file}, {"verify"}, {"verify", wicked}, {"verify", "--json"},
		{"compact"}, {"reap"}, {"doctor"}, {"stats"}, {wicked}, {"status", "--" + wicked},
		{"erase", wicked, "--dry-run"}, {"erase", "--older-than", "1us", "--scope", wicked, "--dry-run"}, {"erase", wicked, "--yes"}, {"allow", wicked}, {"allow", wicked},
		{"__complete", "show", ""},
	} {
		_, shown := commands.runOnTerminal(arguments...)
		shown = ownColor.ReplaceAllString(strings.ReplaceAll(shown, eraseLine, ""), "")
		for place, character := range shown {
			if character != '\n' && character != '\t' && character != 0 && (unicode.IsControl(character) || unicode.In(character, unicode.Bidi_Control)) {
				t.Errorf("pgagui %q: %U in %q", arguments, character, shown[max(0, place-60):min(len(shown), place+60)])
				break
			}
		}
	}
}
