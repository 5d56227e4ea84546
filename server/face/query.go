package face

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/internal/jsontext"
	"github.com/pgagui/pgagui/server/problem"
)

// Query reads the parameters of a request. Check returns the first problem, also for a parameter
// that the endpoint has not read: a misspelled one must not be ignored.
type Query struct {
	values  url.Values
	read    map[string]bool
	unread  url.Values
	problem error
}

// QueryOf returns the parameters of a request.
func QueryOf(r *http.Request) *Query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &Query{values: values, read: map[string]bool{}, unread: url.Values{}}
	if err != nil {
		q.problem = problem.Errorf(http.StatusBadRequest, "the query string is malformed")
	}
	for name, list := range values {
		q.unread[name] = list
		for _, text := range list {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				q.Refuse(name, "a text in UTF-8 without NUL")
			}
		}
	}
	return q
}

// Check returns what is wrong with the parameters. Call it when all of them have been read.
func (q *Query) Check() error {
	for name := range q.unread {
		if q.problem == nil {
			expected := "no parameters"
			if len(q.read) > 0 {
				expected = strings.Join(slices.Sorted(maps.Keys(q.read)), ", ")
			}
			q.problem = problem.Errorf(http.StatusBadRequest, "the parameter %.100q is unknown here (expected %s)", name, expected)
		}
	}
	return q.problem
}

// Refuse says what was expected of a parameter.
func (q *Query) Refuse(name, expected string) {
	if q.problem == nil {
		q.problem = problem.Errorf(http.StatusBadRequest, "%s is %.100q (expected %s)", name, q.values.Get(name), expected)
	}
}

// Text returns a parameter. Empty: it is not given.
func (q *Query) Text(name string) string {
	if list := q.List(name); len(list) > 1 {
		q.Refuse(name, "one value")
	}
	return q.values.Get(name)
}

// Has reports whether a parameter is given.
func (q *Query) Has(name string) bool { return q.values.Has(name) }

// List returns a parameter that may be given several times.
func (q *Query) List(name string) []string {
	q.read[name] = true
	delete(q.unread, name)
	return q.values[name]
}

// Names returns such a parameter, whose values are not empty.
func (q *Query) Names(name string) []string {
	list := q.List(name)
	if slices.Contains(list, "") {
		q.Refuse(name, "a name, or no parameter at all")
	}
	return list
}

// value returns a parameter that is no text. Empty: it is not given.
func (q *Query) value(name, expected string) string {
	text := q.Text(name)
	if text == "" && q.Has(name) {
		q.Refuse(name, expected)
	}
	return text
}

// Number returns a number that is not negative. 0: it is not given.
func (q *Query) Number(name string) (n int64) {
	if text := q.value(name, "a number from 0 on"); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
			q.Refuse(name, "a number from 0 on")
		}
	}
	return n
}

// Limit returns the size of a page. 0: it is not given.
func (q *Query) Limit() int { return q.Size("limit") }

// Size returns the size of a page by another name. 0: it is not given.
func (q *Query) Size(name string) int {
	n := q.Number(name)
	if q.Has(name) && n == 0 || n > 1000 {
		q.Refuse(name, "a number from 1 to 1000")
	}
	return int(n)
}

// Time returns a time. Zero: it is not given.
func (q *Query) Time(name string) (at time.Time) {
	if text := q.value(name, "a time such as 2026-01-31T12:00:00Z"); text != "" {
		var err error
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			q.Refuse(name, "a time such as 2026-01-31T12:00:00Z")
		}
	}
	return at
}

// Duration returns a duration that is not negative. 0: it is not given.
func (q *Query) Duration(name string) (d time.Duration) {
	if text := q.value(name, "a duration such as 500ms or 2s"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d < 0 {
			q.Refuse(name, "a duration such as 500ms or 2s")
		}
	}
	return d
}

// Is returns a boolean, or otherwise if it is not given.
func (q *Query) Is(name string, otherwise bool) bool {
	switch q.value(name, "true or false") {
	case "true":
		return true
	case "false":
		return false
	case "":
	default:
		q.Refuse(name, "true or false")
	}
	return otherwise
}

// OneOf returns a parameter that has one of some values. Empty: it is not given.
func (q *Query) OneOf(name string, values ...string) string {
	text := q.value(name, strings.Join(values, ", "))
	if text != "" && !slices.Contains(values, text) {
		q.Refuse(name, strings.Join(values, ", "))
	}
	return text
}

// Object returns a JSON object. nil: it is not given.
func (q *Query) Object(name string) json.RawMessage {
	text := q.value(name, "a JSON object")
	if text == "" {
		return nil
	}
	if !json.Valid([]byte(text)) || !jsontext.IsObject([]byte(text)) {
		q.Refuse(name, "a JSON object")
	}
	return json.RawMessage(text)
}

// At reads a point in a thread. prefix comes before the names of the parameters.
func (q *Query) At(prefix string) pgagui.At {
	return pgagui.At{RunID: q.Text(prefix + "run"), Seq: q.Number(prefix + "at_seq"), Time: q.Time(prefix + "at_time")}
}

// checkPath reports a path with an id that the database cannot store.
func checkPath(r *http.Request) error {
	if !utf8.ValidString(r.URL.Path) || strings.ContainsRune(r.URL.Path, 0) {
		return problem.Errorf(http.StatusBadRequest, "the path has an id that is not UTF-8 without NUL")
	}
	return nil
}

// ReadBody reads a JSON object into a struct. An empty body leaves the struct as it is.
func ReadBody(r *http.Request, into any) error { return readInto(r, into, false) }

// ReadObject is ReadBody, but refuses a member that the struct does not have: a misspelled one must
// not be ignored.
func ReadObject(r *http.Request, into any) error { return readInto(r, into, true) }

func readInto(r *http.Request, into any, isStrict bool) error {
	body, err := readAll(r)
	if err != nil || len(body) == 0 {
		return err
	}
	if !jsontext.IsObject(body) {
		return errNoObject
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if isStrict {
		decoder.DisallowUnknownFields()
	}
	err = decoder.Decode(into)
	if err == nil && len(bytes.Trim(body[decoder.InputOffset():], " \t\r\n")) > 0 {
		err = errors.New("there is more than one JSON value")
	}
	if err == nil && jsontext.HasHalf(body) {
		if read, _ := json.Marshal(into); replacements(read) > replacements(body) {
			err = jsontext.ErrHalf
		}
	}
	if err != nil {
		status := http.StatusBadRequest
		if number, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(number.Value, "number ") {
			status = http.StatusUnprocessableEntity // 3.0 is an integer in a schema
		}
		return problem.Errorf(status, "%s", bodyProblem(err))
	}
	return nil
}

// bodyProblem says what is wrong with a body, in words of the API.
func bodyProblem(err error) string {
	var (
		syntax *json.SyntaxError
		other  *json.UnmarshalTypeError
	)
	unknown, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case isUnknown:
		return fmt.Sprintf("the member %s of the body is unknown here", unknown)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the body is not valid JSON: it ends too early"
	case errors.As(err, &syntax):
		return fmt.Sprintf("the body is not valid JSON: byte %d: %s", syntax.Offset, syntax)
	case errors.As(err, &other) && other.Field != "":
		name := other.Field[strings.LastIndexByte(other.Field, '.')+1:]
		return fmt.Sprintf("the member %q of the body is of the wrong type: %s", strings.ToLower(name[:1])+name[1:], other.Value)
	}
	return "the body: " + strings.TrimPrefix(err.Error(), "json: ")
}

// replacements counts the characters that Go reads in place of what is no character.
func replacements(text []byte) int {
	return bytes.Count(text, []byte("\uFFFD")) + bytes.Count(bytes.ToLower(text), []byte(`\ufffd`))
}

var errNoObject = problem.Errorf(http.StatusBadRequest, "the body is no JSON object")
