// Package eventfile reads the files that AG-UI events are kept in: NDJSON, a JSON array, the body of a server-sent event
// stream, and events separated by NUL bytes. The bytes of every event come out as they are in the file.
package eventfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/pgagui/pgagui/internal/rawjson"
)

const (
	// maxEvent is how many bytes one event may have: as many as one append may.
	maxEvent = 64 << 20
	// largeEvent is from how many bytes on an event is not copied.
	largeEvent = 1 << 20
)

// An Event is one event of a file.
type Event struct {
	// Raw is the event as the file has it: one valid JSON object in UTF-8, without white space around it. It belongs to the
	// caller.
	Raw json.RawMessage
	// Line is the line that the event begins in; the first line is 1.
	Line int
}

// An Error says what is wrong with a file, and where.
type Error struct {
	File string
	Line int // the first line is 1
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Read yields the events of a file in their order, each as soon as its last byte is read. The name is for error messages.
// The first bytes that are not blank tell the format:
//
//   - {: JSON objects with white space, line ends or NUL bytes between them, so NDJSON too;
//   - [: one JSON array of objects;
//   - a field or a comment of a server-sent event stream: such a stream; "[DONE]" and empty data are no events.
//
// Anything but an event ends the reading with an *Error, after the events before it. At any time no more than one event is in memory;
// one of more than 64 MiB is an error. A file that is empty or blank has no events.
func Read(name string, r io.Reader) iter.Seq2[Event, error] {
	return read(name, r, maxEvent)
}

// read is Read with another limit for the bytes of an event.
func read(name string, r io.Reader, limit int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &file{name: name, input: bufio.NewReaderSize(r, 64<<10), limit: limit, line: 1}
		next, err := f.detectFormat()
		for err == nil {
			var event Event
			if event, err = next(); err == nil && !yield(event, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(Event{}, err)
		}
	}
}

// file is a file that is being read. Its methods that return an error return io.EOF where the file may end, an *Error
// otherwise.
type file struct {
	name   string
	input  *bufio.Reader
	limit  int    // of the bytes of an event
	line   int    // of the next byte of input
	buffer []byte // the object, or the line of an event stream, that is being read

	afterElement        bool // of a JSON array: a comma or the end must follow
	afterCarriageReturn bool // of an event stream: a line feed here still belongs to the last line end
}

const (
	byteOrderMark = "\uFEFF"
	blanks        = " \t\r\n"
	separators    = blanks + "\x00"
)

// detectFormat returns the method that reads the next event.
func (f *file) detectFormat() (next func() (Event, error), err error) {
	if start, _ := f.input.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		f.discard(len(byteOrderMark))
	}
	first, err := f.skip(separators)
	switch {
	case err != nil:
		return nil, err
	case first == '{':
		return f.nextObject, nil
	case first == '[':
		f.discard(1)
		return f.nextElement, nil
	case f.atEventStream():
		return f.nextMessage, nil
	}
	return nil, f.problem(f.line, fmt.Errorf("not a file of events: it begins with %s: "+
		"JSON objects, a JSON array or a server-sent event stream is needed, in UTF-8 and not compressed", f.ahead()))
}

// nextObject reads the next of a sequence of objects.
func (f *file) nextObject() (Event, error) {
	if _, err := f.skip(separators); err != nil {
		return Event{}, err
	}
	return f.object()
}

// nextElement reads the next element of a JSON array.
func (f *file) nextElement() (Event, error) {
	next, err := f.skip(blanks)
	switch {
	case err != nil:
		return Event{}, f.unexpectedEnd(err)
	case next == ']':
		f.discard(1)
		return Event{}, f.arrayEnd()
	case f.afterElement && next != ',':
		return Event{}, f.problem(f.line, fmt.Errorf("not valid JSON: a comma or the end of the array must follow an event, not %s", f.ahead()))
	case f.afterElement:
		f.discard(1)
		if _, err := f.skip(blanks); err != nil {
			return Event{}, f.unexpectedEnd(err)
		}
	}
	f.afterElement = true
	return f.object()
}

// arrayEnd returns io.EOF if nothing follows the array.
func (f *file) arrayEnd() error {
	if _, err := f.skip(blanks); err != nil {
		return err
	}
	return f.problem(f.line, fmt.Errorf("nothing may follow the end of the JSON array, but %s does", f.ahead()))
}

// unexpectedEnd is the error for an array that err cuts off between two events.
func (f *file) unexpectedEnd(err error) error {
	if err == io.EOF {
		return f.problem(f.line, errors.New("not valid JSON: unexpected end of input in the JSON array (cut off?)"))
	}
	return err
}

// object reads the object that begins here. It looks only for the end of the object, then has the whole checked.
func (f *file) object() (Event, error) {
	begin := f.line
	if next, err := f.peek(); err != nil {
		return Event{}, err
	} else if next[0] != '{' {
		return Event{}, f.notAnObject(begin, f.ahead())
	}
	f.buffer = f.buffer[:0]
	var (
		depth             int
		inString, escaped bool
	)
	for len(f.buffer) <= f.limit {
		text, err := f.peek()
		if err == io.EOF {
			break
		} else if err != nil {
			return Event{}, err
		}
		ended := false
		for i, c := range text {
			switch {
			case escaped:
				escaped = false
			case inString && c == '\\':
				escaped = true
			case c == '"':
				inString = !inString
			case inString:
				ended = c < ' ' // not JSON: a line that was cut off in a string must not swallow the rest
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
				ended = depth == 0
			}
			if ended {
				text = text[:i+1]
				break
			}
		}
		f.buffer = append(f.buffer, text...)
		f.discard(len(text))
		if ended {
			break
		}
	}
	return f.event(f.buffer, func(newlines int) int { return begin + newlines })
}

// event checks and returns the event that a text holds. lineAfter tells the line of the file that follows the text's first
// so many line feeds.
func (f *file) event(text []byte, lineAfter func(newlines int) int) (Event, error) {
	blank := len(text) - len(bytes.TrimLeft(text, blanks))
	begin := lineAfter(bytes.Count(text[:blank], []byte("\n")))
	offset, err := fault(text)
	switch {
	case len(text) > f.limit && (err == nil || err == errCutOff):
		return Event{}, f.tooLarge(begin)
	case err == errCutOff:
		return Event{}, f.problem(begin, err)
	case err != nil:
		line := lineAfter(bytes.Count(text[:offset], []byte("\n")))
		if line != begin {
			err = fmt.Errorf("%w (the event begins in line %d)", err, begin)
		}
		return Event{}, f.problem(line, err)
	case text[blank] != '{':
		return Event{}, f.notAnObject(begin, excerpt(text[blank:]))
	}
	raw := bytes.Trim(text, blanks)
	if len(raw) < largeEvent {
		return Event{Raw: bytes.Clone(raw), Line: begin}, nil
	}
	f.buffer = nil // it belongs to the caller now
	return Event{Raw: raw, Line: begin}, nil
}

var errCutOff = errors.New("not valid JSON: unexpected end of input (cut off?)")

// fault returns why a text is not one JSON value in UTF-8.
func fault(text []byte) (offset int, err error) {
	if !json.Valid(text) {
		var ignored json.RawMessage
		var syntax *json.SyntaxError
		if err := json.Unmarshal(text, &ignored); !errors.As(err, &syntax) {
			return 0, fmt.Errorf("not valid JSON: %w", err)
		}
		if syntax.Error() == "unexpected end of JSON input" {
			return len(text), errCutOff
		}
		offset = max(0, int(syntax.Offset)-1)
		if text[offset] == '\n' {
			return offset, fmt.Errorf("not valid JSON: %w (cut off?)", syntax)
		}
		return offset, fmt.Errorf("not valid JSON: %w", rawjson.WhyInvalid(text))
	}
	if utf8.Valid(text) {
		return 0, nil
	}
	for offset < len(text) {
		character, size := utf8.DecodeRune(text[offset:])
		if character == utf8.RuneError && size == 1 {
			return offset, fmt.Errorf("not valid UTF-8: byte 0x%02x", text[offset])
		}
		offset += size
	}
	return 0, nil
}

// skip reads over a set of ASCII characters and returns the byte that follows them.
func (f *file) skip(set string) (next byte, err error) {
	for {
		text, err := f.peek()
		if err != nil {
			return 0, err
		}
		rest := bytes.TrimLeft(text, set)
		f.discard(len(text) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
	}
}

// peek returns the input at hand, at least one byte.
func (f *file) peek() ([]byte, error) {
	if _, err := f.input.Peek(1); err == io.EOF {
		return nil, io.EOF
	} else if err != nil {
		return nil, f.problem(f.line, fmt.Errorf("reading the file: %w", err))
	}
	return f.input.Peek(f.input.Buffered())
}

// discard reads over bytes that were peeked at.
func (f *file) discard(n int) {
	text, _ := f.input.Peek(n)
	f.line += bytes.Count(text, []byte("\n"))
	_, _ = f.input.Discard(n) // cannot fail: the bytes are in the buffer
}

// ahead quotes the input at hand for an error message.
func (f *file) ahead() string {
	text, _ := f.input.Peek(f.input.Buffered())
	return excerpt(text)
}

// excerpt quotes how a text begins.
func excerpt(text []byte) string {
	const enough = 30
	if end := bytes.IndexAny(text, "\r\n"); end > 0 {
		text = text[:end]
	}
	if len(text) > enough {
		return fmt.Sprintf("%q…", text[:enough])
	}
	return fmt.Sprintf("%q", text)
}

func (f *file) problem(line int, err error) error {
	return &Error{File: f.name, Line: line, Err: err}
}

func (f *file) notAnObject(line int, found string) error {
	return f.problem(line, fmt.Errorf("an event must be a JSON object, not %s", found))
}

func (f *file) tooLarge(line int) error {
	return f.problem(line, fmt.Errorf("an event has at most %d bytes, this one has more", f.limit))
}
