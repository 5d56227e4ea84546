// Package sse reads server-sent events.
package sse

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"
)

// Read yields the data of the events of a stream, each with at most maxBytes. An event without data is
// skipped. The stream may end without the empty line behind the last event, but not within a line.
//
// Errors: bufio.ErrTooLong, io.ErrUnexpectedEOF, and those of the reader.
func Read(stream io.Reader, maxBytes int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var split splitter
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, maxBytes+len("data: \r\n"))
		lines.Split(split.line)
		var data []byte // nil: none yet
		for isFirst := true; lines.Scan(); isFirst = false {
			line := lines.Bytes()
			if isFirst {
				line = bytes.TrimPrefix(line, []byte("\uFEFF"))
			}
			if len(line) == 0 && !split.isCut {
				if len(data) > 0 && !yield(data, nil) {
					return
				}
				data = nil
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			if string(name) != "data" {
				continue
			}
			value = bytes.TrimPrefix(value, []byte(" "))
			if data == nil {
				data = append(make([]byte, 0, len(value)), value...)
			} else {
				data = append(append(data, '\n'), value...)
			}
			if len(data) > maxBytes {
				yield(nil, bufio.ErrTooLong)
				return
			}
		}
		switch err := lines.Err(); {
		case err != nil:
			yield(nil, err)
		case split.isCut:
			yield(nil, io.ErrUnexpectedEOF)
		case len(data) > 0:
			yield(data, nil)
		}
	}
}

// splitter splits a stream into lines, which end with \n, \r or \r\n.
type splitter struct {
	isAfterReturn bool // a \n that comes next ends no line
	isCut         bool // the stream ended within a line
	searched      int  // bytes of the next line that have arrived, without its end
}

func (s *splitter) line(text []byte, atEOF bool) (advance int, line []byte, err error) {
	begin := 0
	if s.isAfterReturn && len(text) > 0 {
		if text[0] == '\n' {
			begin = 1
		}
		s.isAfterReturn = false
	}
	rest := text[begin:]
	ending := rest[s.searched:]
	if at := bytes.IndexByte(ending, '\n'); at >= 0 {
		ending = ending[:at+1]
	}
	if at := bytes.IndexByte(ending, '\r'); at >= 0 {
		ending = ending[:at+1]
	}
	end := s.searched + len(ending) - 1
	switch {
	case len(ending) > 0 && (rest[end] == '\n' || rest[end] == '\r'):
		s.isAfterReturn, s.searched = rest[end] == '\r', 0
		return begin + end + 1, rest[:end:end], nil
	case atEOF && len(rest) > 0:
		s.isCut, s.searched = true, 0
		return len(text), rest, nil
	default:
		s.searched = len(rest)
		return begin, nil, nil
	}
}
