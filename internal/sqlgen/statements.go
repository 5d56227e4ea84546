package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// statement is one SQL statement of a source file, without comments outside of literals.
type statement struct {
	line int // where it begins
	text string
}

// token matches, at the beginning of a text, what must not be looked into when a statement is taken apart: comments,
// literals and quoted names; and the words and characters between them.
var token = regexp.MustCompile(`(?s)^(?:` +
	`(?P<comment>--[^\n]*|/\*.*?\*/)|` +
	`(?P<literal>[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|"(?:[^"]|"")*")|` +
	`(?P<dollar>\$(?:[A-Za-z_][A-Za-z_0-9]*)?\$)|` +
	`(?P<word>[A-Za-z_][A-Za-z_0-9$]*)|` +
	`(?P<space>\s+)|` +
	`.)`)

// tokens takes a text apart. Comments are left out, and white space between tokens becomes one space.
func tokens(text string) []sourceToken {
	var all []sourceToken
	for line := 1; text != ""; {
		match := token.FindStringSubmatch(text)
		value := match[0]
		if tag := match[token.SubexpIndex("dollar")]; tag != "" {
			if end := strings.Index(text[len(tag):], tag); end >= 0 {
				value = text[:len(tag)+end+len(tag)]
			}
		}
		text = text[len(value):]
		switch {
		case match[token.SubexpIndex("comment")] != "", match[token.SubexpIndex("space")] != "":
			if len(all) > 0 && all[len(all)-1].text != " " {
				all = append(all, sourceToken{line: line, text: " "})
			}
		default:
			isWord := match[token.SubexpIndex("word")] != ""
			all = append(all, sourceToken{line: line, text: value, isWord: isWord})
		}
		line += strings.Count(value, "\n")
	}
	return all
}

type sourceToken struct {
	line   int
	text   string
	isWord bool
}

func (t sourceToken) is(word string) bool {
	return t.isWord && strings.EqualFold(t.text, word)
}

// splitStatements splits at the semicolons between statements, which are not those in literals and in
// "begin atomic … end".
func splitStatements(text string) []statement {
	var (
		statements []statement
		current    strings.Builder
		line       int
		depth      int    // of blocks that are open: begin atomic, and case in it
		lastWord   string // the word before, for "begin atomic"
	)
	finish := func() {
		if text := strings.TrimSpace(current.String()); text != "" {
			statements = append(statements, statement{line: line, text: text})
		}
		current.Reset()
	}
	for _, token := range tokens(text) {
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
			finish()
			continue
		}
		if token.isWord {
			lastWord = token.text
		}
		current.WriteString(token.text)
	}
	finish()
	return statements
}

var (
	createRoutine = regexp.MustCompile(`(?is)^create (?:or replace )?(function|procedure|aggregate) (agui\.\w+) ?\(`)
	createObject  = regexp.MustCompile(`(?is)^create (?:or replace )?(view|type|domain) (agui\.\w+)\b`)
	createTrigger = regexp.MustCompile(`(?is)^create (?:or replace )?(?:constraint )?trigger (\w+) .*? on (agui\.\w+)\b`)

	// leavesNothing are statements whose effect goes with the objects that they are about.
	leavesNothing = regexp.MustCompile(`(?i)^(comment on|grant|revoke|do) `)
)

// undo gives the statement that takes a statement back; empty when that needs none.
func undo(statement string) (string, error) {
	if leavesNothing.MatchString(statement) {
		return "", nil
	}
	if match := createRoutine.FindStringSubmatch(statement); match != nil {
		arguments, err := argumentsToDrop(statement[len(match[0]):])
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", match[1], match[2], err)
		}
		return fmt.Sprintf("drop %s %s(%s)", strings.ToLower(match[1]), match[2], arguments), nil
	}
	if match := createObject.FindStringSubmatch(statement); match != nil {
		return fmt.Sprintf("drop %s %s", strings.ToLower(match[1]), match[2]), nil
	}
	if match := createTrigger.FindStringSubmatch(statement); match != nil {
		return fmt.Sprintf("drop trigger %s on %s", match[1], match[2]), nil
	}
	start := statement
	if words := strings.Fields(statement); len(words) > 5 {
		start = strings.Join(words[:5], " ") + " …"
	}
	return "", fmt.Errorf("cannot tell how to take back %q: name objects as agui.name, "+
		"or put the statement into a migration of its own", start)
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
	for _, token := range tokens(text) {
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
	return "", fmt.Errorf("its arguments have no closing parenthesis")
}
