package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/internal/must"
)

// thread makes runs from a text like "a b:a c:a", oldest first: an ID, then a colon and the parent unless it is a root.
func thread(text string) []Run {
	var runs []Run
	for word := range strings.FieldsSeq(text) {
		id, parent, _ := strings.Cut(word, ":")
		runs = append(runs, Run{ID: id, Parent: parent})
	}
	return runs
}

func draw(t *testing.T, runs []Run, options Options) string {
	t.Helper()
	var picture strings.Builder
	must.Do(t, Write(&picture, runs, options))
	return picture.String()
}

func ExampleWrite() {
	_ = Write(os.Stdout, []Run{
		{ID: "run1", Label: "finished"},
		{ID: "run2", Parent: "run1", Label: "finished"},
		{ID: "run3", Parent: "run2", Label: "failed"},
		{ID: "run4", Parent: "run3", Label: "finished"},
		{ID: "run5", Parent: "run2", Label: "finished"},
		{ID: "run6", Parent: "run5", Label: "running", Marks: []string{"head"}},
	}, Options{})
	// Output:
	// * run6 (head) running
	// * run5 finished
	// | * run4 finished
	// | * run3 failed
	// |/
	// * run2 finished
	// * run1 finished
}

func TestPictures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ runs, picture string }{
		"no runs": {"", "\n"},
		"a linear thread": {"a b:a c:b d:c", `
* d
* c
* b
* a
`},
		"one fork": {"a b:a c:b d:b e:d", `
* e
* d
| * c
|/
* b
* a
`},
		"many forks from one run": {"ask 1:ask 2:ask 3:ask 4:ask 5:ask 6:ask 7:ask 8:ask 9:ask 10:ask on:4", `
* on
| * 10
| | * 9
| |/
| | * 8
| |/
| | * 7
| |/
| | * 6
| |/
| | * 5
| |/
* | 4
|/
| * 3
|/
| * 2
|/
| * 1
|/
* ask
`},
		"nested forks": {"a b:a c:b d:c e:c f:b g:a h:a", `
* h
| * g
|/
| * f
| | * e
| | | * d
| | |/
| | * c
| |/
| * b
|/
* a
`},
		"branches that grow by turns": {"a b:a c:a d:b e:c f:d g:e", `
* g
| * f
* | e
| * d
* | c
| * b
|/
* a
`},
		"a lane that crosses another": {"a b:a c:b d:a e:b", `
* e
| * d
| | * c
| |/
|/|
* | b
|/
* a
`},
		"a lane that crosses two others": {"a b:a c:a d:a e:b f:c g:d h:b", `
* h
| * g
| | * f
| | | * e
| |_|/
|/| |
| * | d
| | * c
| |/
* | b
|/
* a
`},
		"a lane that ends left of others": {"a b:a c:a d:a e:b f:c g:d", `
* g
| * f
| | * e
* | | d
| * | c
|/ /
| * b
|/
* a
`},
		"several roots": {"a b:a x y:x c:b z", `
* z

* c
| * y
| * x
* b
* a
`},
		"roots alone": {"a b c", `
* c

* b

* a
`},
		"roots beside a branch": {"a x y b:a z c:b", `
* c
| * z
* b
| * y
|
| * x
* a
`},
		"a root left of another tree": {"a x b:a y:x", `
* y
| * b
* | x
 /
* a
`},
		"parents below the picture": {"c:b d:b e:c f:a", `
* f
| * e
| | * d
| * | c
| |/
: :
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := "\n" + draw(t, thread(test.runs), Options{}); got != test.picture {
				t.Errorf("%s is drawn as%swant%s", test.runs, got, test.picture)
			}
		})
	}
}

func TestMarksAndLabels(t *testing.T) {
	t.Parallel()
	got := draw(t, []Run{
		{ID: "a", Label: "first"},
		{ID: "b", Parent: "a", Marks: []string{"head", "running"}, Label: "2 messages"},
		{ID: "c", Parent: "a", Marks: []string{"stale"}},
	}, Options{})
	want := `* c (stale)
| * b (head, running) 2 messages
|/
* a first
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTextCannotBreakThePictureOrCommandTheTerminal(t *testing.T) {
	t.Parallel()
	got := draw(t, []Run{{
		ID:    "a\x1b[2J",
		Marks: []string{"he\rad"},
		Label: "line\nline\u2028\u202Eevil\u0085 \xff but ünïcödé, \"quotes\", \\ and 👩\u200D🚀 stay",
	}}, Options{})
	want := `* a\x1b[2J (he\rad) line\nline\u2028\u202eevil\u0085 ` + "\uFFFD but ünïcödé, \"quotes\", \\ and 👩\u200D🚀 stay\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestColors(t *testing.T) {
	t.Parallel()
	runs := thread("a b:a c:a d:b e:c f:b")
	runs[5].Marks = []string{"head"}
	colored := draw(t, runs, Options{Color: true})
	for _, want := range []string{
		"\x1b[31m*\x1b[m \x1b[33mf\x1b[m \x1b[1;36m(head)\x1b[m\n",              // the first lane
		"\x1b[31m|\x1b[m \x1b[32m*\x1b[m \x1b[33me\x1b[m\n",                     // the second
		"\x1b[31m|\x1b[m \x1b[32m|\x1b[m\x1b[34m/\x1b[m\n",                      // the third leaves for the first
		"\x1b[31m|\x1b[m\x1b[34m/\x1b[m\x1b[32m|\x1b[m\n",                       // and keeps its color on the way
		"\x1b[31m|\x1b[m \x1b[32m*\x1b[m \x1b[33mc\x1b[m\n\x1b[31m*\x1b[m \x1b", // the others keep theirs
	} {
		if !strings.Contains(colored, want) {
			t.Errorf("%q is not in %q", want, colored)
		}
	}
	plain := colored
	for _, color := range []string{"31", "32", "33", "34", "1;36", ""} {
		plain = strings.ReplaceAll(plain, "\x1b["+color+"m", "")
	}
	if want := draw(t, runs, Options{}); plain != want {
		t.Errorf("without its colors the picture is\n%swant\n%s", plain, want)
	}
}

func TestRunsInTheWrongOrderAreAnError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a b:c c:a": `graph: run "b" is given before its parent "c"`,
		"a b:b":     `graph: run "b" is given before its parent "b"`,
		"a b:a a":   `graph: run "a" is given twice`,
	} {
		var picture strings.Builder
		if err := Write(&picture, thread(text), Options{}); err == nil || err.Error() != want || picture.Len() > 0 {
			t.Errorf("%s: error %v, want %s; picture %q", text, err, want, picture.String())
		}
	}
}

type brokenPipe struct{}

var errBrokenPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBrokenPipe }

func TestWritingErrorsAreReturned(t *testing.T) {
	t.Parallel()
	if err := Write(brokenPipe{}, thread("a b:a"), Options{}); !errors.Is(err, errBrokenPipe) {
		t.Errorf("the error is %v", err)
	}
}

// randomThread makes a thread in which a run follows one of the last reach runs, or none.
func randomThread(random *rand.Rand, runs, reach int, rootChance float64) []Run {
	var thread []Run
	for i := range runs {
		run := Run{ID: "r" + strconv.Itoa(i)}
		if i > 0 && random.Float64() >= rootChance {
			run.Parent = thread[max(0, i-1-random.IntN(reach))].ID
		}
		thread = append(thread, run)
	}
	return thread
}

func TestLinesOfAPictureLeadFromEachRunToItsParent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		runs := randomThread(random, 1+random.IntN(80), 1+random.IntN(15), []float64{0, 0.1, 0.5}[seed%3])
		runs = runs[random.IntN(len(runs)):] // the newest, so that some parents are below the picture
		picture := draw(t, runs, Options{})
		parents := traceParents(strings.Split(strings.TrimSuffix(picture, "\n"), "\n"))
		below := make(map[string]string) // the parent that each lane leads to at the lower edge
		for _, run := range runs {
			got, want := parents[run.ID], run.Parent
			if strings.HasPrefix(got, "below") {
				if _, known := below[got]; !known {
					below[got] = want
				}
				got = below[got]
			}
			if got != want {
				t.Fatalf("seed %d: the lane of %s leads to %q, not to %q in\n%s", seed, run.ID, got, want, picture)
			}
		}
	}
}

// traceParents follows the lines down from every run, as a reader does. Where a line leaves the picture, the parent is
// "below" and the column; a root has no line.
func traceParents(rows []string) map[string]string {
	ids := make([]string, len(rows)) // empty for rows between runs
	for i, row := range rows {
		if at := strings.IndexByte(row, 'r'); at >= 0 {
			rows[i], ids[i] = row[:at], row[at:]
		}
	}
	at := func(row, column int) byte {
		if column < 0 || column >= len(rows[row]) {
			return ' '
		}
		return rows[row][column]
	}
	follow := func(row, column int) string {
		for row++; row < len(rows); row++ {
			switch {
			case at(row, column) == '*':
				return ids[row]
			case at(row, column) == ':':
				return fmt.Sprintf("below %d", column)
			case at(row, column) == '|':
			case at(row, column-1) != '/':
				return ""
			case column-1 == strings.IndexByte(rows[row], '/') && row+1 < len(rows) && ids[row+1] == "" && strings.Contains(rows[row+1], "/"):
				column = strings.IndexByte(rows[row+1], '/') - 1 // crosses other lanes
				row++
			default:
				column -= 2
			}
		}
		return ""
	}
	parents := make(map[string]string)
	for row, id := range ids {
		if id != "" {
			parents[id] = follow(row, strings.IndexByte(rows[row], '*'))
		}
	}
	return parents
}

func BenchmarkWrite(b *testing.B) {
	const runs = 10_000
	shapes := map[string][]Run{
		"linear":       randomThread(rand.New(rand.NewPCG(1, 1)), runs, 1, 0),
		"branches":     randomThread(rand.New(rand.NewPCG(1, 1)), runs, 20, 0),
		"forks of one": {{ID: "root"}},
	}
	for i := 1; i < runs; i++ {
		shapes["forks of one"] = append(shapes["forks of one"], Run{ID: strconv.Itoa(i), Parent: "root"})
	}
	for shape, thread := range shapes {
		b.Run(shape, func(b *testing.B) {
			for b.Loop() {
				var picture strings.Builder
				must.Do(b, Write(&picture, thread, Options{}))
			}
		})
	}
}
