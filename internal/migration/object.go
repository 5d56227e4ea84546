package migration

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// object is something that a statement creates, with the statements that say more about it.
type object struct {
	kind string // function, procedure, aggregate, view, type, domain, trigger, table, index
	name string // agui.append; of a trigger: refuse_change on agui.batch
	path string // of its source; empty: it comes from a migration written by hand

	create     statement
	attributes []attribute

	// Of functions, procedures and aggregates.
	arguments []argument
	returns   string
}

// attribute is a comment on an object, or a privilege.
type attribute struct {
	subject string // for a comment "comment on …" without the text, else the statement
	statement
}

type argument struct {
	text       string // mode, name and type, as DROP wants them
	hasDefault bool
}

// key names an object among all: two of one key cannot exist in parallel.
func (o *object) key() string { return groupOf(o.kind) + " " + o.name }

func groupOf(kind string) string {
	switch kind {
	case "function", "procedure", "aggregate", "routine":
		return "routine"
	case "domain":
		return "type"
	}
	return kind
}

// drop is the statement that drops the object, without its semicolon. It names what it drops and has no cascade, so it never drops
// what someone else made.
func (o *object) drop() string {
	if groupOf(o.kind) == "routine" {
		return fmt.Sprintf("drop %s %s(%s)", o.kind, o.name, o.signature())
	}
	return "drop " + o.kind + " " + o.name
}

func (o *object) signature() string {
	var texts []string
	for _, argument := range o.arguments {
		texts = append(texts, argument.text)
	}
	return strings.Join(texts, ", ")
}

const qualified = `(agui(?:_internal)?\.\w+)`

var (
	createRoutine = regexp.MustCompile(`(?is)^create (?:or replace )?(function|procedure|aggregate) ` + qualified + ` ?\(`)
	createNamed   = regexp.MustCompile(`(?is)^create (?:or replace )?(view|type|domain|table)(?: if not exists)? ` + qualified + `\b`)
	createIndex   = regexp.MustCompile(`(?is)^create (?:unique )?index (?:concurrently )?(?:if not exists )?(\w+) on (?:only )?` + qualified + `\b`)
	createTrigger = regexp.MustCompile(`(?is)^create (?:or replace )?(constraint )?trigger (\w+) .*? on ` + qualified + `\b`)
)

// createdBy returns the object that a statement creates, nil if it is of no kind that is tracked.
func createdBy(statement statement) (*object, error) {
	text := statement.String()
	if match := createRoutine.FindStringSubmatch(text); match != nil {
		object := &object{kind: strings.ToLower(match[1]), name: strings.ToLower(match[2]), create: statement}
		var err error
		if object.arguments, object.returns, err = routineHeader(text[len(match[0]):]); err != nil {
			return nil, fmt.Errorf("%s: %w", object.name, err)
		}
		return object, nil
	}
	if match := createNamed.FindStringSubmatch(text); match != nil {
		return &object{kind: strings.ToLower(match[1]), name: strings.ToLower(match[2]), create: statement}, nil
	}
	if match := createIndex.FindStringSubmatch(text); match != nil {
		schema, _, _ := strings.Cut(match[2], ".")
		return &object{kind: "index", name: strings.ToLower(schema + "." + match[1]), create: statement}, nil
	}
	if match := createTrigger.FindStringSubmatch(text); match != nil {
		return &object{kind: "trigger", name: strings.ToLower(match[2] + " on " + match[3]), create: statement}, nil
	}
	return nil, nil
}

// endOfReturns are the words that may come after the type that a function returns.
var endOfReturns = []string{
	"as", "begin", "called", "cost", "external", "immutable", "language", "leakproof", "not", "parallel", "return", "rows", "security", "set",
	"stable", "strict", "support", "transform", "volatile", "window",
}

// routineHeader takes what follows the opening parenthesis of a routine's arguments and returns the arguments and the return type.
func routineHeader(text string) (arguments []argument, returns string, err error) {
	var (
		current   []token
		depth     int
		isDefault bool
	)
	tokens := tokenize(text)
	for i, token := range tokens {
		switch {
		case token.text == "(" || token.text == "[":
			depth++
		case token.text == "]" || (token.text == ")" && depth > 0):
			depth--
		case depth == 0 && (token.text == "," || token.text == ")"):
			if text := joinTokens(current); text != "" {
				arguments = append(arguments, argument{text: text, hasDefault: isDefault})
			}
			current, isDefault = nil, false
			if token.text == ")" {
				return arguments, returnedType(tokens[i+1:]), nil
			}
			continue
		case depth == 0 && (token.is("default") || token.text == "="):
			isDefault = true
		}
		if !isDefault {
			current = append(current, token)
		}
	}
	return nil, "", errors.New("its arguments have no closing parenthesis")
}

func returnedType(tokens []token) string {
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.text == " " })
	if len(tokens) == 0 || !tokens[0].is("returns") {
		return ""
	}
	var words []string
	depth := 0
	for _, token := range tokens[1:] {
		if depth == 0 && token.is(endOfReturns...) {
			break
		}
		switch token.text {
		case "(":
			depth++
		case ")":
			depth--
		}
		words = append(words, strings.ToLower(token.text))
	}
	return strings.Join(words, " ")
}

var (
	commentOn = regexp.MustCompile(`(?is)^(comment on (\w+) (?:if exists )?(\w+(?:\.\w+)*)(.*?)) is `)
	privilege = regexp.MustCompile(`(?is)^(?:grant|revoke) .*? on (?:(function|procedure|routine|aggregate|table|type|domain) )?` + qualified + `\b`)
	onTable   = regexp.MustCompile(`(?is)^ on ` + qualified)
)

// subjectOf returns the keys that the object of a comment or privilege may have, and what stands for the attribute among those of the
// object. It gives none for other statements.
func subjectOf(statement statement) (keys []string, subject string) {
	text := statement.String()
	if match := commentOn.FindStringSubmatch(text); match != nil {
		kind, name := strings.ToLower(match[2]), strings.ToLower(match[3])
		subject = match[1]
		switch kind {
		case "column":
			relation := name[:max(0, strings.LastIndex(name, "."))]
			return []string{"view " + relation, "table " + relation, "type " + relation}, subject
		case "trigger", "constraint":
			if table := onTable.FindStringSubmatch(match[4]); table != nil {
				return []string{kind + " " + name + " on " + strings.ToLower(table[1]), "table " + strings.ToLower(table[1])}, subject
			}
		}
		return []string{groupOf(kind) + " " + name}, subject
	}
	if match := privilege.FindStringSubmatch(text); match != nil {
		kind, name := strings.ToLower(match[1]), strings.ToLower(match[2])
		if kind == "" || kind == "table" {
			return []string{"view " + name, "table " + name}, text
		}
		return []string{groupOf(kind) + " " + name}, text
	}
	return nil, ""
}

var dropStatement = regexp.MustCompile(`(?is)^drop (function|procedure|aggregate|routine|view|type|domain|trigger|table|index) (?:concurrently )?(?:if exists )?`)

// droppedBy returns the keys of the objects that a statement drops.
func droppedBy(statement statement) []string {
	text := statement.String()
	match := dropStatement.FindStringSubmatch(text)
	if match == nil {
		return nil
	}
	kind := strings.ToLower(match[1])
	rest := strings.ToLower(text[len(match[0]):])
	if kind == "trigger" {
		return []string{"trigger " + strings.TrimSuffix(strings.TrimSuffix(rest, " cascade"), " restrict")}
	}
	group := groupOf(kind)
	// Names in parentheses are types of arguments.
	var named []token
	depth := 0
	for _, token := range tokenize(rest) {
		switch {
		case token.text == "(":
			depth++
		case token.text == ")":
			depth--
		case depth == 0:
			named = append(named, token)
		}
	}
	keys := qualifiedName.FindAllString(joinTokens(named), -1)
	for i := range keys {
		keys[i] = group + " " + keys[i]
	}
	return keys
}
