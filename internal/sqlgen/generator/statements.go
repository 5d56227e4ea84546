package generator

import (
	"regexp"
	"strings"
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

var tokenPattern = regexp.MustCompile(`(?s)^(?:` +
	`(?P<space>(?:\s|--[^\n]*|/\*.*?\*/)+)|` +
	`(?P<literal>[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*")|` +
	`(?P<dollar>\$(?:[A-Za-z_][A-Za-z_0-9]*)?\$)|` +
	`(?P<word>[A-Za-z_][A-Za-z_0-9$]*)|` +
	`.)`)

func tokenize(text string) []token {
	var tokens []token
	for start, line := 0, 1; start < len(text); {
		rest := text[start:]
		match := tokenPattern.FindStringSubmatch(rest)
		value := match[0]
		if tag := match[tokenPattern.SubexpIndex("dollar")]; tag != "" {
			if end := strings.Index(rest[len(tag):], tag); end >= 0 {
				value = rest[:len(tag)+end+len(tag)]
			}
		}
		next := token{start: start, line: line, text: value, isWord: match[tokenPattern.SubexpIndex("word")] != ""}
		if match[tokenPattern.SubexpIndex("space")] != "" {
			next.text = " "
		}
		tokens = append(tokens, next)
		start += len(value)
		line += strings.Count(value, "\n")
	}
	return tokens
}

// statement is one SQL statement of a file.
type statement struct {
	line   int    // where it begins
	source string // its very text, with the comments before it and the semicolon
	tokens []token
}

// splitStatements splits a text at the semicolons between statements, which are not those in "begin atomic … end".
func splitStatements(text string) []statement {
	var (
		statements []statement
		current    statement
		start      int    // of the current statement, with the comments before it
		depth      int    // of blocks that are open: begin atomic, and case in it
		lastWord   string // for "begin atomic"
	)
	finish := func(end int) {
		if len(current.tokens) > 0 {
			current.source = strings.TrimSpace(text[start:end])
			statements = append(statements, current)
		}
		current, start = statement{}, end
	}
	for _, token := range tokenize(text) {
		if len(current.tokens) == 0 {
			if token.text == " " {
				continue
			}
			current.line = token.line
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
		current.tokens = append(current.tokens, token)
	}
	finish(len(text))
	return statements
}

// String gives the statement without comments and with single spaces, but for what is in literals and bodies.
func (s statement) String() string { return joinTokens(s.tokens) }

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
	for i := 2; i < len(s.tokens); i++ {
		schema := s.tokens[i-2]
		if schema.is("agui", "agui_internal") && s.tokens[i-1].text == "." && s.tokens[i].isWord {
			names = append(names, strings.ToLower(schema.text+"."+s.tokens[i].text))
		}
	}
	return names
}

var qualifiedName = regexp.MustCompile(`(?i)\bagui(?:_internal)?\.\w+`)

// mentionsAnywhere returns all such names, those in bodies too, which a server looks up when it runs the body.
func (s statement) mentionsAnywhere() []string {
	names := qualifiedName.FindAllString(s.String(), -1)
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}
