package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
)

// runOnTerminal runs a command whose results and messages go to a terminal, and returns what the
// terminal receives. The terminal does not say how wide it is.
func runOnTerminal(c clitest.CommandLine, arguments ...string) (code int, shown string) {
	c.T.Helper()
	return runOnTerminalOfWidth(c, 0, arguments...)
}

func runOnTerminalOfWidth(c clitest.CommandLine, columns uint16, arguments ...string) (code int, shown string) {
	c.T.Helper()
	master := must.Have(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(c.T)
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	must.Do(c.T, err)
	terminal := must.Have(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(c.T)
	// The terminal must not translate line ends.
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, mode)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	must.Do(c.T, err)
	all := make(chan string)
	go func() {
		var text bytes.Buffer
		_, _ = io.Copy(&text, master) // returns an error when the other end is closed
		all <- text.String()
	}()
	code = clitest.Run(c.T.Context(), append(arguments, "--database-url", c.DatabaseURL), strings.NewReader(""), terminal, terminal)
	terminal.Close()
	return code, <-all
}

// On a terminal an old name of a command says the new one.
func TestOldNamesNameTheNewOnes(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	for line, want := range map[string]string{
		"follow t --history=stream": "\"pgagui follow\" is now \"pgagui events --follow\"\n--history is now --compact\n",
		"hold ls":                   "\"pgagui hold ls\" is now \"pgagui retention hold\"\n",
		"retention hold":            "THREAD",
	} {
		if _, shown := runOnTerminal(commands, strings.Fields(line)...); !strings.HasPrefix(shown, want) {
			t.Errorf("%s: %q", line, shown)
		}
	}
}

// Tables fit the terminal. They are whole with --wide, in a pipe, and if the terminal has no width.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	// Characters of several bytes, and an id with one that is shown as an escape.
	why := strings.Repeat("naïve “quoted” answer 12345 ", 10) + "THE END"
	thread := "a thread with a long name, longer than others\x07"
	event := func(format string, values ...string) string {
		quoted := make([]any, len(values))
		for i, value := range values {
			quoted[i] = eventjson.Quote(value)
		}
		return fmt.Sprintf(format, quoted...)
	}
	commands.Must("import", clitest.WriteFile(t, "failed.ndjson",
		event(`{"type":"RUN_STARTED","threadId":%s,"runId":"r","input":{"messages":[{"id":"u","role":"user","content":%s}]}}`, thread, "Where to? "+why),
		event(`{"type":"RUN_ERROR","message":%s}`, why),
	))
	widest := func(shown string) (columns int) {
		for line := range strings.Lines(shown) {
			columns = max(columns, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		return columns
	}
	for _, arguments := range [][]string{{"log", "--all-threads"}, {"threads"}, {"log", thread}, {"show", "--status", thread}} {
		whole := commands.Must(arguments...)
		if !strings.Contains(whole, "THE END") {
			t.Errorf("pgagui %q in a pipe:\n%s", arguments, whole)
		}
		for _, columns := range []uint16{100, 130, 200} {
			_, shown := runOnTerminalOfWidth(commands, columns, arguments...)
			if strings.Contains(shown, "THE END") || !strings.Contains(shown, "…") || widest(shown) != int(columns) ||
				strings.Count(shown, "\n") != strings.Count(whole, "\n") {
				t.Errorf("pgagui %q on a terminal of %d columns has lines of %d:\n%s", arguments, columns, widest(shown), shown)
			}
		}
		for columns, more := range map[uint16][]string{100: {"--wide"}, 1000: nil, 0: nil} {
			if _, shown := runOnTerminalOfWidth(commands, columns, append(slices.Clone(arguments), more...)...); widest(shown) != widest(whole) || !strings.Contains(shown, "THE END") {
				t.Errorf("pgagui %q %q on a terminal of %d columns:\n%s\nwant\n%s", arguments, more, columns, shown, whole)
			}
		}
		// Too narrow for the columns that are not cut: lines are longer, but nothing breaks.
		if code, shown := runOnTerminalOfWidth(commands, 5, arguments...); code != cli.ExitOK || strings.Count(shown, "\n") != strings.Count(whole, "\n") {
			t.Errorf("pgagui %q on a terminal of 5 columns: exit code %d\n%s", arguments, code, shown)
		}
	}
}

// wicked contains sequences that set colors and titles, overwrite text and change its direction.
const wicked = "a\x1b]0;pwned\x07\x1b[35mb\u009b31mc\u202ed\x7fe\rf\bg"

// ownColor matches the colors of log and show, which do not use magenta.
var ownColor = regexp.MustCompile(`\x1b\[(?:[012];?)?(?:3[12346])?m`)

func TestNothingThatOthersWroteActsOnTheTerminal(t *testing.T) {
	commands := clitest.NewCommandLine(t)
	pool := testdb.Connect(t, commands.DatabaseURL)
	jsonOf := func(text string) string { return string(eventjson.Quote(text)) }
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
			testdb.Exec(t, pool, step.statement, step.arguments...)
		}
	}
	file := clitest.WriteFile(t, "more.ndjson", `{"type":"RUN_STARTED","threadId":`+jsonOf(wicked)+`,"runId":`+jsonOf(wicked+"3")+`}`, `{"type":"RUN_STARTED","runId":"x"`)
	for _, arguments := range [][]string{
		{"events", wicked}, {"events", wicked, "--compact", "stream"}, {"events", wicked, "--null"}, {"events", "no" + wicked}, {"events", wicked, "--run", "no" + wicked},
		{"events", "--follow", wicked, "--run", wicked}, {"events", "--follow", wicked, "--run", wicked, "--json"},
		{"events", "--page", wicked}, {"events", "--page", wicked, "--json"}, {"log", wicked}, {"log", wicked, "--graph"}, {"log", wicked, "--json"},
		{"log", "--branches", wicked}, {"show", wicked}, {"show", wicked, "--full"}, {"show", wicked, "--json"}, {"show", wicked, "--document"}, {"show", wicked, "--document", "--json"},
		{"show", "--status", wicked}, {"show", "--status", wicked, "--json"}, {"show", "--status", wicked + "cut"}, {"stop", "no" + wicked},
		{"threads"}, {"threads", "--json"}, {"threads", "set", "no" + wicked, "--title", wicked}, {"threads", "--scope", wicked},
		{"session", "ls", wicked, "--run", wicked}, {"session", "get", wicked, wicked, "--run", wicked}, {"session", "get", wicked, "--run", wicked},
		{"session", "get", wicked, wicked + "no"}, {"session", "put", wicked, wicked, file},
		{"import", file}, {"import", file + wicked}, {"import", "--scope", wicked, file}, {"verify"}, {"verify", wicked}, {"verify", "--json"},
		{"job", "compact"}, {"job", "reap"}, {"doctor"}, {"stats"}, {wicked}, {"show", "--status", "--" + wicked},
		{"erase", wicked, "--dry-run"}, {"erase", "--older-than", "1us", "--scope", wicked, "--dry-run"}, {"erase", wicked, "--yes"}, {"retention", "allow", wicked}, {"retention", "allow", wicked},
		{"__complete", "show", ""},
	} {
		_, shown := runOnTerminal(commands, arguments...)
		shown = ownColor.ReplaceAllString(strings.ReplaceAll(shown, cli.EraseLine, ""), "")
		for place, character := range shown {
			if character != '\n' && character != '\t' && character != 0 && (unicode.IsControl(character) || unicode.In(character, unicode.Bidi_Control)) {
				t.Errorf("pgagui %q: %U in %q", arguments, character, shown[max(0, place-60):min(len(shown), place+60)])
				break
			}
		}
	}
}
