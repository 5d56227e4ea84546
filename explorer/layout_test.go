package explorer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

// picture writes a tree as text: a line for each row, with its lane, and how many runs it stands for.
func picture(rows []treeRow) string {
	var lines []string
	for _, row := range rows {
		line := strings.Repeat("| ", row.Lane) + row.ID
		if row.Folded > 0 {
			line = strings.Repeat("| ", row.Lane) + fmt.Sprintf("(%d runs to %s)", row.Folded, row.ID)
		}
		if row.isJoined {
			line += " /"
		}
		if !row.hasParent {
			line += " root"
		}
		if row.OnLineage {
			line += " *"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// runsOf makes runs: "b<a" is a run b that follows a.
func runsOf(texts ...string) (runs []pgagui.Run) {
	for i, text := range texts {
		id, parent, _ := strings.Cut(text, "<")
		run := pgagui.Run{ID: id, ParentRunID: parent, Number: i + 1, Status: pgagui.Finished}
		if strings.HasSuffix(id, "!") {
			run.Status = pgagui.Failed
		}
		runs = append(runs, run)
	}
	return runs
}

func TestDrawTree(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		runs           []pgagui.Run
		head, selected string
		open           map[int]bool
		want           string
	}{
		"none": {},
		"the trip": {runsOf("1", "2<1", "3<2", "4<3", "5<1", "6!<5", "7<5"), "7", "4", nil, `
7
| 6! /
5
| 4 *
| 3 *
| 2 / *
1 root *`},
		"a straight stretch": {runsOf("1", "2<1", "3<2", "4<3", "5<4", "6<5"), "6", "6", nil, `
6 *
(4 runs to 2) *
1 root *`},
		"the same, open": {runsOf("1", "2<1", "3<2", "4<3", "5<4", "6<5"), "6", "6", map[int]bool{2: true}, `
6 *
5 *
4 *
3 *
2 *
1 root *`},
		"a failure in it, and the selected run": {runsOf("1", "2<1", "3<2", "4<3", "5!<4", "6<5!", "7<6", "8<7", "9<8", "10<9"), "10", "7", nil, `
10
9
8
7 *
6 *
5! *
(3 runs to 2) *
1 root *`},
		"branches of branches": {runsOf("1", "2<1", "3<1", "4<3", "5<3", "6<2"), "6", "6", nil, `
6 *
2 *
| 5
| | 4 /
| 3 /
1 root *`},
		"two trees, and a parent that is not there": {runsOf("1", "2", "3<1", "4<gone"), "3", "2", nil, `
3
1 root
4 root
2 root *`},
	} {
		got := picture(drawTree(test.runs, test.head, test.selected, test.open))
		if got != strings.TrimPrefix(test.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// A chain of 100,000 runs is drawn without a deep stack, and 1,000 branches within a bounded width.
func TestDrawLargeTrees(t *testing.T) {
	t.Parallel()
	var chain, comb []pgagui.Run
	for i := range 100_000 {
		run := pgagui.Run{ID: fmt.Sprint(i), Number: i + 1, Status: pgagui.Finished}
		if i > 0 {
			run.ParentRunID = fmt.Sprint(i - 1)
		}
		chain = append(chain, run)
	}
	if rows := drawTree(chain, "99999", "99999", nil); len(rows) != 3 || rows[1].Folded != 99_998 {
		t.Errorf("%d rows", len(rows))
	}
	for i := range 2000 { // each run of the comb has a branch, which has one, …
		run := pgagui.Run{ID: fmt.Sprint(i), Number: i + 1, Status: pgagui.Finished}
		if i > 0 {
			run.ParentRunID = fmt.Sprint(i/2*2 - i%2*2 + i%2)
		}
		if i > 1 {
			run.ParentRunID = fmt.Sprint((i - 1) / 2 * 2)
		}
		comb = append(comb, run)
	}
	for _, row := range drawTree(comb, "0", "1", nil) {
		if row.Width() > laneWidth*(mostLanes+1) || row.X() >= row.Width() {
			t.Fatalf("a row is %d wide", row.Width())
		}
		row.Lines()
	}
}

func TestStateLines(t *testing.T) {
	t.Parallel()
	lines, isCut := stateLines([]byte(` {"a/b": {"c~": [1, {"d": "x"}, []]}, "e": {} , "f": 1.0}`), []string{"/a~1b/c~0/1", "/f"})
	var got strings.Builder
	for _, line := range lines {
		if line.IsChanged {
			got.WriteString("*")
		}
		got.WriteString(line.Indent())
		if line.HasKey {
			got.WriteString(line.Key + ": ")
		}
		got.WriteString(line.Text + "\n")
	}
	want := `{
  a/b: {
    c~: [
      1,
*      {
*        d: "x"
*      },
      []
    ]
  },
  e: {},
*  f: 1.0
}
`
	if got.String() != want || isCut {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	var large strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&large, ",%d", i)
	}
	if lines, isCut := stateLines([]byte("["+large.String()[1:]+"]"), nil); len(lines) != mostStateLines || !isCut {
		t.Errorf("%d lines, cut: %v", len(lines), isCut)
	}
	for _, odd := range []string{"", "null", "{", `"text"`, strings.Repeat("[", 500) + strings.Repeat("]", 500)} {
		stateLines([]byte(odd), []string{""})
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	line := timeLine{open: map[string]int{}}
	seq := int64(0)
	add := func(after time.Duration, text string) {
		seq++
		var of struct{ Type string }
		must.Do(t, json.Unmarshal([]byte(text), &of))
		line.add(pgagui.HistoryEvent{Seq: seq, LastSeq: seq, Count: 1, Type: of.Type, CreatedAt: begin.Add(after), JSON: []byte(text)})
	}
	add(0, `{"type":"RUN_STARTED"}`)
	add(time.Second/2, `{"type":"STEP_STARTED","stepName":"plan"}`)
	add(time.Second, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}`)
	add(time.Second, `{"type":"TOOL_CALL_END","toolCallId":"c"}`)
	add(4*time.Second, `{"type":"TOOL_CALL_RESULT","toolCallId":"c"}`)
	add(4*time.Second, `{"type":"STEP_FINISHED","stepName":"plan"}`)
	add(4*time.Second, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`)
	add(4500*time.Millisecond, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}`)
	add(5*time.Second, `{"type":"RUN_ERROR"}`)
	body := timesPage{}
	line.draw(&body)
	var got []string
	for _, s := range body.Spans {
		got = append(got, fmt.Sprintf("%s %s %d+%d %s %v %v", s.Kind, s.Name, s.X, s.Width, s.Took, s.IsOpen, s.IsBad))
	}
	want := "step plan 100+700 3.5 s false false\ntool look 200+600 3 s false false\nmessage assistant 800+100 500 ms true true"
	if strings.Join(got, "\n") != want || body.Total != "5 s" || body.FirstToken != "4.5 s" || len(body.Gaps) != 1 || body.Gaps[0].Took != "3 s" || body.Gaps[0].AfterSeq != 4 {
		t.Errorf("%s\n%s %s %+v", strings.Join(got, "\n"), body.Total, body.FirstToken, body.Gaps)
	}
	// When events say when they happened, the log's times count only between them.
	line = timeLine{open: map[string]int{}}
	add(0, `{"type":"RUN_STARTED","timestamp":1700000001000}`)
	add(time.Second, `{"type":"TEXT_MESSAGE_START","messageId":"m"}`)
	add(time.Second, `{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":1700000004000}`)
	body = timesPage{}
	line.draw(&body)
	if body.Total != "3 s" || body.Spans[0].Took != "2 s" {
		t.Errorf("%s %+v", body.Total, body.Spans)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"1,234,567": countText(1234567), "1 run": countText(1, "run"), "0 runs": countText(0, "run"), "12": countText(12.4), "-1,000": countText(-1000),
		"999 B": bytesText(999), "1.50 kB": bytesText(1500), "2.00 MB": bytesText(2_000_000), "250 GB": bytesText(250_000_000_000),
		"0 ms": durationText(0), "12 µs": durationText(12 * time.Microsecond), "1.25 s": durationText(1250 * time.Millisecond), "2 min 5 s": durationText(125 * time.Second), "3 h 0 min": durationText(3 * time.Hour),
		"now": ago(0), "5 min ago": ago(5 * time.Minute), "3 days ago": ago(80 * time.Hour), "a b": short(" a\n b ", 5), "abcd…": short("abcdefg", 5),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
