package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui"
)

// query reads the parameters of a request. check returns the first problem, also for a parameter
// that the endpoint has not read: a misspelled one must not be ignored.
type query struct {
	values  url.Values
	unread  url.Values
	problem error
}

func queryOf(r *http.Request) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values, unread: url.Values{}}
	if err != nil {
		q.problem = problemf(http.StatusBadRequest, "the query string is malformed")
	}
	for name, list := range values {
		q.unread[name] = list
		for _, text := range list {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				q.refuse(name, "a text in UTF-8 without NUL")
			}
		}
	}
	return q
}

// check returns what is wrong with the parameters. Call it when all of them have been read.
func (q *query) check() error {
	for name := range q.unread {
		if q.problem == nil {
			q.problem = problemf(http.StatusBadRequest, "the parameter %.100q is unknown here", name)
		}
	}
	return q.problem
}

func (q *query) refuse(name, expected string) {
	if q.problem == nil {
		q.problem = problemf(http.StatusBadRequest, "%s is %.100q (expected %s)", name, q.values.Get(name), expected)
	}
}

// text returns a parameter. Empty: it is not given.
func (q *query) text(name string) string {
	if list := q.list(name); len(list) > 1 {
		q.refuse(name, "one value")
	}
	return q.values.Get(name)
}

// list returns a parameter that may be given several times.
func (q *query) list(name string) []string {
	delete(q.unread, name)
	return q.values[name]
}

// names returns such a parameter, whose values are not empty.
func (q *query) names(name string) []string {
	list := q.list(name)
	if slices.Contains(list, "") {
		q.refuse(name, "a name, or no parameter at all")
	}
	return list
}

// value returns a parameter that is no text. Empty: it is not given.
func (q *query) value(name, expected string) string {
	text := q.text(name)
	if text == "" && q.values.Has(name) {
		q.refuse(name, expected)
	}
	return text
}

// number returns a number that is not negative. 0: it is not given.
func (q *query) number(name string) (n int64) {
	if text := q.value(name, "a number from 0 on"); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
			q.refuse(name, "a number from 0 on")
		}
	}
	return n
}

// limit returns the size of a page. 0: it is not given.
func (q *query) limit() int {
	n := q.number("limit")
	if q.values.Has("limit") && n == 0 || n > 1000 {
		q.refuse("limit", "a number from 1 to 1000")
	}
	return int(n)
}

func (q *query) time(name string) (at time.Time) {
	if text := q.value(name, "a time such as 2026-01-31T12:00:00Z"); text != "" {
		var err error
		if at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			q.refuse(name, "a time such as 2026-01-31T12:00:00Z")
		}
	}
	return at
}

func (q *query) duration(name string) (d time.Duration) {
	if text := q.value(name, "a duration such as 500ms or 2s"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d < 0 {
			q.refuse(name, "a duration such as 500ms or 2s")
		}
	}
	return d
}

func (q *query) is(name string, otherwise bool) bool {
	switch q.value(name, "true or false") {
	case "true":
		return true
	case "false":
		return false
	case "":
	default:
		q.refuse(name, "true or false")
	}
	return otherwise
}

// oneOf returns a parameter that has one of some values. Empty: it is not given.
func (q *query) oneOf(name string, values ...string) string {
	text := q.value(name, strings.Join(values, ", "))
	if text != "" && !slices.Contains(values, text) {
		q.refuse(name, strings.Join(values, ", "))
	}
	return text
}

// object returns a JSON object. nil: it is not given.
func (q *query) object(name string) json.RawMessage {
	text := q.value(name, "a JSON object")
	if text == "" {
		return nil
	}
	if !json.Valid([]byte(text)) || !isObject([]byte(text)) {
		q.refuse(name, "a JSON object")
	}
	return json.RawMessage(text)
}

// at reads a point in a thread. prefix comes before the names of the parameters.
func (q *query) at(prefix string) pgagui.At {
	return pgagui.At{RunID: q.text(prefix + "run"), Seq: q.number(prefix + "at_seq"), Time: q.time(prefix + "at_time")}
}

// checkPath reports a path with an id that the database cannot store.
func checkPath(r *http.Request) error {
	if !utf8.ValidString(r.URL.Path) || strings.ContainsRune(r.URL.Path, 0) {
		return problemf(http.StatusBadRequest, "the path has an id that is not UTF-8 without NUL")
	}
	return nil
}

// readBody reads a JSON object into a struct. An empty body leaves the struct as it is.
func readBody(r *http.Request, into any) error { return readInto(r, into, false) }

// readObject is readBody, but refuses a member that the struct does not have: a misspelled one must
// not be ignored.
func readObject(r *http.Request, into any) error { return readInto(r, into, true) }

func readInto(r *http.Request, into any, isStrict bool) error {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return err
	}
	if !isObject(body) {
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
	if err != nil {
		return problemf(http.StatusBadRequest, "the body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

var errNoObject = problemf(http.StatusBadRequest, "the body is no JSON object")

// isObject reports whether a text, if it is JSON, is an object.
func isObject(text []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) }
