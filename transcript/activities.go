package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/pgagui/pgagui/compaction"
)

// A Renderer makes lines of the content of an activity. If it returns an error, because the content
// has another shape than it reads, [JSON] shows the content.
type Renderer func(content json.RawMessage) ([]Line, error)

// Lines returns the lines of an activity, by the renderer of its type: for programs that lay
// conversations out themselves.
func (w *Writer) Lines(item Item) []Line {
	if renderer := w.renderers[strings.ToUpper(item.ActivityType)]; renderer != nil {
		if lines, err := renderer(item.Content); err == nil {
			return lines
		}
	}
	return JSON(item.Content)
}

// Checklist returns a renderer of steps; PLAN, SEARCH and WORKFLOW use it. The content is an object
// with a list under one of these keys, or the list itself. A step is one of these:
//
//   - - a string. A leading ✓ or [x] means that it is done, [ ] that it is not; a trailing … that
//     it is in progress.
//   - - an object with a title (name, task, description, text, label) and a status (or state) such
//     as pending, running, complete, failed, or a boolean done (completed, checked). It may have a
//     progress, percentage or share, and a list of steps.
//
// currentStep (current, activeStep) of the content names the step in progress, by its title, its id
// or its place from 0, if the steps have no status of their own. Other members of the content or of
// a step are shown beside it.
func Checklist(keys ...string) Renderer {
	return func(content json.RawMessage) ([]Line, error) {
		if !json.Valid(content) {
			return nil, errors.New("not valid JSON")
		}
		content = bytes.TrimSpace(content)
		var lines []Line
		var list []byte
		var current string
		if object, isObject := membersOf(content); isObject {
			list = object.takeList(keys)
			if raw := object.take("currentStep", "current_step", "activeStep", "current"); raw != nil {
				current, _ = shortJSON(raw, false)
			}
			lines = object.lines(0)
		} else if content[0] == '[' {
			list = content
		}
		if list == nil {
			return nil, fmt.Errorf("no list of %s", strings.Join(keys, ", "))
		}
		return append(lines, stepLines(list, 0, keys, current)...), nil
	}
}

// step is one of a checklist.
type step struct {
	id       string
	title    string
	mark     Mark // NoMark: not given
	note     string
	rest     members
	children []byte // a list of steps, or nil
}

func stepLines(list []byte, depth int, keys []string, current string) []Line {
	var steps []step
	at, marked := -1, false
	for element, err := range compaction.Split(list) {
		if err != nil {
			break
		}
		s := readStep(element, keys)
		if current != "" && (s.title == current || s.id == current || fmt.Sprint(len(steps)) == current) && at < 0 {
			at = len(steps)
		}
		marked = marked || s.mark != NoMark
		steps = append(steps, s)
	}
	var lines []Line
	for i, s := range steps {
		if s.mark == NoMark {
			s.mark = Pending
			if at >= 0 && !marked && i <= at {
				s.mark = Done
				if i == at {
					s.mark = Active
				}
			}
		}
		line := Line{Depth: depth, Mark: s.mark, Text: s.title, Note: s.note}
		beside, short := s.rest.inLine()
		if short && beside != "" {
			line.Note = strings.TrimPrefix(line.Note+", "+beside, ", ")
		}
		lines = append(lines, line)
		if !short {
			lines = append(lines, s.rest.lines(depth+1)...)
		}
		if s.children != nil && depth < mostDepth {
			lines = append(lines, stepLines(s.children, depth+1, keys, current)...)
		}
	}
	return lines
}

func readStep(element []byte, keys []string) (s step) {
	object, isObject := membersOf(element)
	if !isObject {
		if element[0] != '"' {
			s.title, _ = shortJSON(element, true)
			return s
		}
		text, _ := stringOf(element)
		s.title, s.mark = textStep(text)
		return s
	}
	if id := object.take("id"); id != nil {
		s.id, _ = shortJSON(id, false)
	}
	title, _ := stringOf(object.takeText("title", "name", "task", "step", "description", "text", "label", "content"))
	s.title, s.mark = textStep(title)
	if status, ok := stringOf(object.takeText("status", "state")); ok && status != "" {
		var known bool
		if s.mark, known = statusMark(status); !known {
			s.note = status
		}
	} else if done := object.takeFlag("done", "completed", "complete", "checked", "finished"); done != nil {
		s.mark = Pending
		if *done {
			s.mark = Done
		}
	}
	if progress := progressText(&object); progress != "" {
		s.note = strings.TrimPrefix(s.note+", "+progress, ", ")
	}
	s.children = object.takeList(append([]string{"children", "substeps", "subtasks"}, keys...))
	s.title = cmp.Or(s.title, s.id)
	s.rest = object
	return s
}

// signs stand in front of steps that are written as text.
var signs = []struct {
	text string
	mark Mark
}{
	{"✓", Done}, {"✔", Done}, {"✅", Done}, {"☑", Done}, {"[x]", Done}, {"[X]", Done},
	{"▸", Active}, {"▶", Active}, {"⏳", Active},
	{"✗", Failed}, {"✘", Failed}, {"❌", Failed}, {"[~]", Skipped},
	{"☐", Pending}, {"○", Pending}, {"◦", Pending}, {"[ ]", Pending},
}

// textStep reads a step that is a text.
func textStep(text string) (title string, mark Mark) {
	text = strings.TrimSpace(text)
	for _, bullet := range []string{"- ", "* "} {
		text = strings.TrimPrefix(text, bullet)
	}
	for _, sign := range signs {
		if rest, found := strings.CutPrefix(text, sign.text); found {
			return strings.TrimSpace(strings.TrimPrefix(rest, "\ufe0f")), sign.mark // the variation selector of an emoji may follow
		}
	}
	if strings.HasSuffix(text, "…") || strings.HasSuffix(text, "...") {
		return text, Active
	}
	return text, NoMark
}

// statusMark returns the mark for a status, in the words that agents use.
func statusMark(status string) (mark Mark, known bool) {
	switch strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(status)) {
	case "pending", "todo", "queued", "waiting", "notstarted", "planned", "open", "idle":
		return Pending, true
	case "running", "inprogress", "active", "current", "started", "working", "processing", "executing":
		return Active, true
	case "searching", "loading", "streaming", "checking":
		return Active, false
	case "done", "complete", "completed", "success", "succeeded", "finished", "ok", "found":
		return Done, true
	case "failed", "failure", "error", "errored":
		return Failed, true
	case "rejected", "timeout", "timedout", "aborted", "blocked":
		return Failed, false
	case "skipped", "cancelled", "canceled":
		return Skipped, true
	}
	return NoMark, false
}

// progressText shows a progress: 60 % with a bar. A number up to 1 is a share, a larger one a percentage.
func progressText(object *members) string {
	for _, key := range []string{"progress", "percent", "percentage"} {
		var number float64
		if raw := object.get(key); json.Unmarshal(raw, &number) != nil || raw[0] == 'n' || number < 0 || number > 100 {
			continue
		}
		object.take(key)
		if number <= 1 && key == "progress" {
			number *= 100
		}
		const cells = 10
		filled := int(math.Round(number / 100 * cells))
		return strings.Repeat("█", filled) + strings.Repeat("░", cells-filled) + fmt.Sprintf(" %.0f %%", number)
	}
	return ""
}

// members are those of a JSON object, in order.
type members []member

type member struct {
	key   string
	value []byte
}

func membersOf(value []byte) (object members, isObject bool) {
	if value[0] != '{' {
		return nil, false
	}
	for key, value := range compaction.Members(value) {
		object = append(object, member{key, value})
	}
	return object, true
}

func (m members) get(key string) []byte {
	for _, member := range m {
		if member.key == key {
			return member.value
		}
	}
	return nil
}

// takeIf removes the first member, in the order of the keys, that fits, and returns its value.
func (m *members) takeIf(keys []string, wanted func(value []byte) bool) []byte {
	for _, key := range keys {
		for i, member := range *m {
			if member.key == key && wanted(member.value) {
				*m = append((*m)[:i:i], (*m)[i+1:]...)
				return member.value
			}
		}
	}
	return nil
}

func (m *members) take(keys ...string) []byte {
	return m.takeIf(keys, func([]byte) bool { return true })
}

func (m *members) takeText(keys ...string) []byte {
	return m.takeIf(keys, func(value []byte) bool { return value[0] == '"' && len(value) > len(`""`) })
}

func (m *members) takeList(keys []string) []byte {
	return m.takeIf(keys, func(value []byte) bool { return value[0] == '[' })
}

func (m *members) takeFlag(keys ...string) *bool {
	if value := m.takeIf(keys, func(value []byte) bool { return value[0] == 't' || value[0] == 'f' }); value != nil {
		flag := value[0] == 't'
		return &flag
	}
	return nil
}

func (m members) lines(depth int) (lines []Line) {
	for _, member := range m {
		lines = appendValue(lines, depth, member.key, member.value)
	}
	return lines
}

// inLine returns the members on one line, if they are short enough.
func (m members) inLine() (text string, short bool) {
	var built strings.Builder
	for _, member := range m {
		if built.Len() > 0 {
			built.WriteString(", ")
		}
		built.WriteString(member.key + ": ")
		if !inLine(&built, member.value, false) || built.Len() > mostInLine {
			return "", false
		}
	}
	return built.String(), true
}
