package migration

import (
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"
)

// token is a piece of SQL. Literals, quoted names and function bodies in dollar quotes are one token each, so that
// their content is not read as SQL. White space between other tokens is a token of one space; comments count as such.
type token struct {
	start  int // where it begins in the text
	line   int
	text   string
	isWord bool
}

func (t token) is(words ...string) bool {
	for _, word := range words {
		if t.isWord && strings.EqualFold(t.text, word) {
			return true
		}
	}
	return false
}

// tokens yields the tokens of a text as they are needed: most readers stop before the body of a function.
func tokens(text string) iter.Seq[token] {
	return func(yield func(token) bool) {
		for start, line := 0, 1; start < len(text); {
			length, isWord := nextToken(text[start:])
			next := token{start: start, line: line, text: text[start : start+length], isWord: isWord}
			start += length
			line += strings.Count(next.text, "\n")
			if isSpace(next.text) {
				next.text = " "
			}
			if !yield(next) {
				return
			}
		}
	}
}

func isSpace(text string) bool {
	return strings.IndexByte(whiteSpace, text[0]) >= 0 || strings.HasPrefix(text, "--") || strings.HasPrefix(text, "/*")
}

// nextToken returns the length of the token that a text begins with.
func nextToken(text string) (length int, isWord bool) {
	switch first := text[0]; {
	case isSpace(text):
		return lengthOfSpace(text), false
	case (first == 'e' || first == 'E') && len(text) > 1 && text[1] == '\'':
		return 1 + lengthOfLiteral(text[1:], true), false
	case first == '\'' || first == '"':
		return lengthOfLiteral(text, false), false
	case first == '$':
		return lengthOfDollarQuoted(text), false
	case isLetter(first):
		length := 1
		for length < len(text) && (isLetter(text[length]) || isDigit(text[length]) || text[length] == '$') {
			length++
		}
		return length, true
	}
	_, length = utf8.DecodeRuneInString(text)
	return length, false
}

const whiteSpace = " \t\n\r\f\v"

// lengthOfSpace is that of the white space and the comments that a text begins with.
func lengthOfSpace(text string) int {
	for length := 0; ; {
		rest := text[length:]
		switch {
		case rest == "":
			return length
		case strings.IndexByte(whiteSpace, rest[0]) >= 0:
			length++
		case strings.HasPrefix(rest, "--"):
			length += lengthUpTo(rest, 2, "\n")
		case strings.HasPrefix(rest, "/*"):
			length += lengthUpTo(rest, 2, "*/")
		default:
			return length
		}
	}
}

// lengthOfLiteral is that of the literal or the quoted name that a text begins with. Its quote is in it only twice, or behind a backslash.
func lengthOfLiteral(text string, backslashes bool) int {
	for i := 1; i < len(text); i++ {
		switch {
		case backslashes && text[i] == '\\':
			i++
		case text[i] == text[0] && i+1 < len(text) && text[i+1] == text[0]:
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return len(text)
}

// lengthOfDollarQuoted is that of the text in dollar quotes that a text begins with, or 1 if it begins with a mere dollar sign.
func lengthOfDollarQuoted(text string) int {
	tag := 1
	for tag < len(text) && (isLetter(text[tag]) || tag > 1 && isDigit(text[tag])) {
		tag++
	}
	if tag == len(text) || text[tag] != '$' {
		return 1
	}
	tag++
	return lengthUpTo(text, tag, text[:tag])
}

// lengthUpTo is the length of a text up to the first end in it, from some place on.
func lengthUpTo(text string, from int, end string) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// statement is one SQL statement of a file.
type statement struct {
	line   int    // where it begins
	source string // its very text, with the comments before it and the semicolon
	text   string // without comments and with single spaces, but for what is in literals and bodies
}

// String gives the text.
func (s statement) String() string { return s.text }

// splitStatements splits a text at the semicolons between statements, which are not those in "begin atomic … end".
func splitStatements(text string) []statement {
	var (
		statements []statement
		current    strings.Builder // the text of the current statement
		line       int             // where that begins
		start      int             // the same, with the comments before it
		depth      int             // of blocks that are open: begin atomic, and case in it
		lastWord   string          // for "begin atomic"
	)
	finish := func(end int) {
		if current.Len() > 0 {
			statements = append(statements, statement{line, strings.TrimSpace(text[start:end]), strings.TrimSpace(current.String())})
		}
		current.Reset()
		start = end
	}
	for token := range tokens(text) {
		if current.Len() == 0 {
			if token.text == " " {
				continue
			}
			line = token.line
		}
		switch {
		case token.is("atomic") && strings.EqualFold(lastWord, "begin"), token.is("case") && depth > 0:
			depth++
		case token.is("end") && depth > 0:
			depth--
		case token.text == ";" && depth == 0:
			finish(token.start + 1)
			continue
		}
		if token.isWord {
			lastWord = token.text
		}
		current.WriteString(token.text)
	}
	finish(len(text))
	return statements
}

func joinTokens(tokens []token) string {
	var text strings.Builder
	for _, token := range tokens {
		text.WriteString(token.text)
	}
	return strings.TrimSpace(text.String())
}

// mentions returns the names agui.… and agui_internal.… outside of literals and of bodies in dollar quotes: PostgreSQL looks them up
// when it runs the statement.
func (s statement) mentions() []string {
	var names []string
	var before, last token
	for next := range tokens(s.text) {
		if next.isWord && last.text == "." && before.is("agui", "agui_internal") {
			names = append(names, strings.ToLower(before.text+"."+next.text))
		}
		before, last = last, next
	}
	return names
}

var qualifiedName = regexp.MustCompile(`(?i)\bagui(?:_internal)?\.\w+`)

// mentionsAnywhere returns the first of the names that the statement has, in a body too, where a server looks it up when it runs the
// body; empty: it has none. Few statements have one, and each command asks when it starts, so the text is searched before its names are.
func (s statement) mentionsAnywhere(names map[string]bool) string {
	text := strings.ToLower(s.String())
	hasAny := false
	for name := range names {
		hasAny = hasAny || strings.Contains(text, name)
	}
	if !hasAny {
		return ""
	}
	for _, mentioned := range qualifiedName.FindAllString(text, -1) {
		if names[mentioned] {
			return mentioned
		}
	}
	return ""
}
