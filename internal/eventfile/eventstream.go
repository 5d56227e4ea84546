package eventfile

import (
	"bytes"
	"fmt"
	"io"
)

// This file reads server-sent event streams: https://html.spec.whatwg.org/multipage/server-sent-events.html. It is stricter
// in one point: a line that is neither a known field nor a comment is an error, because its content would be lost.

// atEventStream reports whether the input at hand is the start of a stream.
func (f *file) atEventStream() bool {
	for _, start := range []string{":", "data:", "event:", "id:", "retry:"} {
		if text, _ := f.input.Peek(len(start)); string(text) == start {
			return true
		}
	}
	return false
}

// nextMessage reads the stream up to the end of the next message that holds an event. The last message may end with the file.
func (f *file) nextMessage() (Event, error) {
	var (
		data  []byte // ends each of its lines with a line feed
		lines []int  // for each line of data, its line in the file
	)
	for {
		number := f.line
		line, err := f.readLine()
		if err != nil && err != io.EOF {
			return Event{}, err
		}
		if len(line) == 0 {
			if text := bytes.Trim(data, blanks); len(text) > 0 && string(text) != "[DONE]" {
				data = data[:len(data)-1]
				return f.event(data, func(newlines int) int { return lines[newlines] })
			}
			if err == io.EOF {
				return Event{}, io.EOF
			}
			data, lines = data[:0], lines[:0]
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		switch string(field) {
		case "data":
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			data = append(data, '\n')
			lines = append(lines, number)
			if len(data) > f.limit+1 {
				return Event{}, f.tooLarge(lines[0])
			}
		case "", "event", "id", "retry":
		default:
			return Event{}, f.problem(number, fmt.Errorf(
				"not a line of a server-sent event stream (data:, event:, id:, retry: or a comment): %s", excerpt(line)))
		}
	}
}

// readLine reads a line and its end: CR, LF or both. The line is good until the next call. io.EOF comes with an empty line.
func (f *file) readLine() ([]byte, error) {
	number := f.line
	f.buffer = f.buffer[:0]
	for {
		text, err := f.peek()
		if err == io.EOF && len(f.buffer) > 0 {
			return f.buffer, nil
		} else if err != nil {
			return nil, err
		}
		if f.afterCarriageReturn {
			f.afterCarriageReturn = false
			if text[0] == '\n' {
				f.discard(1)
				f.line = number // the carriage return has counted
				continue
			}
		}
		end := bytes.IndexAny(text, "\r\n")
		if end < 0 {
			f.buffer = append(f.buffer, text...)
			f.discard(len(text))
			if len(f.buffer) > f.limit+len("data: ") {
				return nil, f.tooLarge(number)
			}
			continue
		}
		f.buffer = append(f.buffer, text[:end]...)
		f.afterCarriageReturn = text[end] == '\r'
		f.discard(end + 1)
		f.line = number + 1
		return f.buffer, nil
	}
}
