package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// token is a piece of SQL. Literals, quoted names and function bodies in dollar quotes are one token each, so that
// nobody takes what is in them for SQL. White space between other tokens is a token of one space; comments count as such.
type token struct {
	line   int
	text   string
	isWord bool
}

func (t token) is(word string) bool {
	return t.isWord && strings.EqualFold(t.text, word)
}

var tokenPattern = regexp.MustCompile(`(?s)^(?:` +
	`(?P<space>(?:\s|--[^\n]*|/\*.*?\*/)+)|` +
	`(?P<literal>[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*")|` +
	`(?P<dollar>\$(?:[A-Za-z_][A-Za-z_0-9]*)?\$)|` +
	`(?P<word>[A-Za-z_][A-Za-z_0-9$]*)|` +
	`.)`)

func tokenize(text string) []token {
	var tokens []token
	for line := 1; text != ""; {
		match := tokenPattern.FindStringSubmatch(text)
		value := match[0]
		if tag := match[tokenPattern.SubexpIndex("dollar")]; tag != "" {
			if end := strings.Index(text[len(tag):], tag); end >= 0 {
				value = text[:len(tag)+end+len(tag)]
			}
		}
		next := token{line: line, text: value, isWord: match[tokenPattern.SubexpIndex("word")] != ""}
		if match[tokenPattern.SubexpIndex("space")] != "" {
			next.text = " "
		}
		tokens = append(tokens, next)
		text = text[len(value):]
		line += strings.Count(value, "\n")
	}
	return tokens
}

// statement is one SQL statement of a source.
type statement struct {
	line   int // where it begins
	tokens []token
}

// splitStatements splits a source at the semicolons between statements, which are not those in "begin atomic … end".
func splitStatements(text string) []statement {
	var (
		statements []statement
		current    statement
		depth      int    // of blocks that are open: begin atomic, and case in it
		lastWord   string // for "begin atomic"
	)
	finish := func() {
		if len(current.tokens) > 0 {
			statements = append(statements, current)
		}
		current = statement{}
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
			finish()
			continue
		}
		if token.isWord {
			lastWord = token.text
		}
		current.tokens = append(current.tokens, token)
	}
	finish()
	return statements
}

// String gives the statement in one line, as far as its literals allow.
func (s statement) String() string {
	var text strings.Builder
	for _, token := range s.tokens {
		text.WriteString(token.text)
	}
	return text.String()
}

// mentions are the names agui.… and agui_internal.… outside of literals and of bodies in dollar quotes: PostgreSQL looks them up when it runs
// the statement.
func (s statement) mentions() []string {
	var names []string
	for i := 2; i < len(s.tokens); i++ {
		schema := s.tokens[i-2]
		if (schema.is("agui") || schema.is("agui_internal")) && s.tokens[i-1].text == "." && s.tokens[i].isWord {
			names = append(names, strings.ToLower(schema.text)+"."+s.tokens[i].text)
		}
	}
	return names
}

// effect is what a statement leaves in the database.
type effect struct {
	creates string // name of an object
	drop    string // statement that takes it back
}

var (
	createRoutine = regexp.MustCompile(`(?is)^create (?:or replace )?(function|procedure|aggregate) (agui(?:_internal)?\.\w+) ?\(`)
	createObject  = regexp.MustCompile(`(?is)^create (?:or replace )?(view|type|domain) (agui(?:_internal)?\.\w+)\b`)
	createTrigger = regexp.MustCompile(`(?is)^create (?:or replace )?(?:constraint )?trigger (\w+) .*? on (agui(?:_internal)?\.\w+)\b`)

	// leavesNothing are statements whose effect goes with the objects that they are about.
	leavesNothing = regexp.MustCompile(`(?i)^(comment on|grant|revoke|do) `)
)

func effectOf(statement statement) (effect, error) {
	text := statement.String()
	if leavesNothing.MatchString(text) {
		return effect{}, nil
	}
	if match := createRoutine.FindStringSubmatch(text); match != nil {
		kind, name := strings.ToLower(match[1]), match[2]
		arguments, err := argumentsToDrop(text[len(match[0]):])
		if err != nil {
			return effect{}, fmt.Errorf("%s: %w", name, err)
		}
		return effect{creates: name, drop: fmt.Sprintf("drop %s %s(%s)", kind, name, arguments)}, nil
	}
	if match := createObject.FindStringSubmatch(text); match != nil {
		kind, name := strings.ToLower(match[1]), match[2]
		return effect{creates: name, drop: fmt.Sprintf("drop %s %s", kind, name)}, nil
	}
	if match := createTrigger.FindStringSubmatch(text); match != nil {
		return effect{drop: fmt.Sprintf("drop trigger %s on %s", match[1], match[2])}, nil
	}
	start := strings.Fields(text)
	return effect{}, fmt.Errorf("cannot tell how to take back %q: name objects as agui.name or agui_internal.name, or put the statement into a migration",
		strings.Join(start[:min(5, len(start))], " ")+" …")
}

// argumentsToDrop takes what follows the opening parenthesis of a routine's arguments and gives the arguments as DROP
// wants them: without defaults.
func argumentsToDrop(text string) (string, error) {
	var (
		arguments []string
		current   strings.Builder
		depth     int
		inDefault bool
	)
	for _, token := range tokenize(text) {
		switch {
		case token.text == "(" || token.text == "[":
			depth++
		case token.text == "]" || (token.text == ")" && depth > 0):
			depth--
		case depth == 0 && (token.text == "," || token.text == ")"):
			arguments = append(arguments, strings.TrimSpace(current.String()))
			current.Reset()
			inDefault = false
			if token.text == ")" {
				arguments = slices.DeleteFunc(arguments, func(argument string) bool { return argument == "" })
				return strings.Join(arguments, ", "), nil
			}
			continue
		case depth == 0 && (token.is("default") || token.text == "="):
			inDefault = true
		}
		if !inDefault {
			current.WriteString(token.text)
		}
	}
	return "", errors.New("its arguments have no closing parenthesis")
}
