package migration

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// object is something that a statement creates, with the statements that say more about it.
type object struct {
	kind string // function, procedure, aggregate, view, type, domain, trigger, table, index
	name string // agui.append; of a trigger: refuse_change on agui.batch
	path string // of its source; empty: it comes from a migration written by hand

	create     statement
	needs      []string // what the statement mentions
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

// isClosed is the attribute that every routine of the sources has: PostgreSQL lets everyone execute what it creates, and
// agui.grant_access() comes only after all routines.
func isClosed(routine string) attribute {
	text := fmt.Sprintf("revoke execute on routine %s from public", routine)
	return attribute{text, statement{source: text + ";", text: text}}
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

// longestBeginning is more than a statement has up to the name of what it creates.
const longestBeginning = 500

// createdBy returns the object that a statement creates, nil if it is of no kind that is tracked.
func createdBy(statement statement) (*object, error) {
	created := &object{create: statement}
	beginning := statement.text[:min(longestBeginning, len(statement.text))]
	if match := createRoutine.FindStringSubmatch(beginning); match != nil {
		created.kind, created.name = match[1], match[2]
		var err error
		if created.arguments, created.returns, err = routineHeader(statement.text[len(match[0]):]); err != nil {
			return nil, fmt.Errorf("%s: %w", match[2], err)
		}
	} else if match := createNamed.FindStringSubmatch(beginning); match != nil {
		created.kind, created.name = match[1], match[2]
	} else if match := createIndex.FindStringSubmatch(beginning); match != nil {
		schema, _, _ := strings.Cut(match[2], ".")
		created.kind, created.name = "index", schema+"."+match[1]
	} else if match := createTrigger.FindStringSubmatch(beginning); match != nil {
		created.kind, created.name = "trigger", match[2]+" on "+match[3]
	} else {
		return nil, nil
	}
	created.kind, created.name = strings.ToLower(created.kind), strings.ToLower(created.name)
	created.needs = statement.mentions()
	return created, nil
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
	for token := range tokens(text) {
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
				return arguments, returnedType(text[token.start+1:]), nil
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

// returnedType takes what follows the closing parenthesis.
func returnedType(text string) string {
	var words []string
	depth := 0
	for token := range tokens(text) {
		switch {
		case token.text == " ":
			continue
		case len(words) == 0 && !token.is("returns"):
			return ""
		case depth == 0 && token.is(endOfReturns...):
			return strings.Join(words[1:], " ")
		case token.text == "(":
			depth++
		case token.text == ")":
			depth--
		}
		words = append(words, strings.ToLower(token.text))
	}
	return strings.Join(words[min(1, len(words)):], " ")
}

var (
	closed    = regexp.MustCompile(`(?is)^revoke execute on (?:function|procedure|routine) ` + qualified + ` ?(?:\(.*\))? ?from public$`)
	commentOn = regexp.MustCompile(`(?is)^(comment on (\w+) (?:if exists )?(\w+(?:\.\w+)*)(.*?)) is `)
	privilege = regexp.MustCompile(`(?is)^(?:grant|revoke) .*? on (?:(function|procedure|routine|aggregate|table|type|domain) )?` + qualified + `\b`)
	onTable   = regexp.MustCompile(`(?is)^ on ` + qualified)
)

// attributeOf returns what a comment or privilege sets, and the keys that its object may have. It gives no keys for other statements.
// A routine is named without its arguments, so that what says the same is the same.
func attributeOf(statement statement) (keys []string, set attribute) {
	text := statement.String()
	if match := closed.FindStringSubmatch(text); match != nil {
		name := strings.ToLower(match[1])
		return []string{"routine " + name}, isClosed(name)
	}
	if match := commentOn.FindStringSubmatch(text); match != nil {
		kind, name, subject := strings.ToLower(match[2]), strings.ToLower(match[3]), match[1]
		switch kind {
		case "column":
			relation := name[:max(0, strings.LastIndex(name, "."))]
			keys = []string{"view " + relation, "table " + relation, "type " + relation}
		case "trigger", "constraint":
			if table := onTable.FindStringSubmatch(match[4]); table != nil {
				keys = []string{kind + " " + name + " on " + strings.ToLower(table[1]), "table " + strings.ToLower(table[1])}
			}
		case "function", "procedure":
			subject = "comment on routine " + name
			statement.text = subject + text[len(match[1]):]
		}
		if keys == nil {
			keys = []string{groupOf(kind) + " " + name}
		}
		return keys, attribute{subject, statement}
	}
	if match := privilege.FindStringSubmatch(text); match != nil {
		kind, name := strings.ToLower(match[1]), strings.ToLower(match[2])
		if kind == "" || kind == "table" {
			return []string{"view " + name, "table " + name}, attribute{text, statement}
		}
		return []string{groupOf(kind) + " " + name}, attribute{text, statement}
	}
	return nil, attribute{}
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
	for token := range tokens(rest) {
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
