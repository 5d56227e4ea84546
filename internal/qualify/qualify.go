// Package qualify gives every name in SQL its schema: SQL without a pinned search_path must not look anything up along the path of its caller,
// where others may have planted an operator or a function that fits better.
//
// It reads statements, and bodies of PL/pgSQL, as far as this repository needs, and refuses what it cannot qualify.
package qualify

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SQL returns a text with pg_catalog before operators, functions, types and relations that have no schema. What is qualified comes back as it is.
func SQL(text string) (string, error) {
	tokens := tokenize(text)
	known := namesOf(tokens)
	var qualified strings.Builder
	var problems []error
	refuse := func(at int, advice string) {
		line := 1 + strings.Count(text[:tokens[at].start], "\n")
		problems = append(problems, fmt.Errorf("line %d: %q looks something up along search_path: %s", line, tokens[at].text, advice))
	}
	// How tightly the last operator of an expression binds, by what is open around it: parentheses, brackets and case.
	type open struct {
		by   string
		last int
	}
	opened := []open{{"", loosest}}
	for i, this := range tokens {
		before, after := at(tokens, i, -1), at(tokens, i, +1)
		switch {
		case this.kind == "operator" && isOperator(tokens, i):
			// All operators with a schema bind alike, from left to right.
			binding := bindingOf(this.text)
			if binding > opened[len(opened)-1].last {
				refuse(i, "put parentheses around what it combines")
			}
			opened[len(opened)-1].last = binding
			qualified.WriteString("operator(pg_catalog." + this.text + ")")
			continue
		case this.text == "(" || this.text == "[" || this.text == "case":
			opened = append(opened, open{this.text, loosest})
		case this.text == ")" || this.text == "]" || this.text == "end" && opened[len(opened)-1].by == "case":
			if len(opened) > 1 {
				opened = opened[:len(opened)-1]
			}
		case this.text == "," || this.text == ";" || this.text == ":=" || this.kind == "word" && breaks[this.text]:
			opened[len(opened)-1].last = loosest
		}
		if this.kind != "word" {
			qualified.WriteString(this.source)
			continue
		}
		switch {
		case advice[this.text] != "":
			refuse(i, advice[this.text])
		case this.text == "in" && after.text == "(":
			refuse(i, "write = any (array[…])")
		case this.text == "using" && after.text == "(":
			refuse(i, "write on …")
		case this.text == "distinct" && (before.text == "is" || before.text == "not"):
			refuse(i, "compare, and say what null means")
		case this.text == "case" && after.text != "when":
			refuse(i, "write case when … = …")
		case strings.ContainsAny(this.text, `."`) || known[this.text]:
		case isType(tokens, i) && !grammarTypes[this.text],
			after.text == "(" && !isType(tokens, i) && !notFunctions[this.text] && before.text != "as",
			slices.Contains([]string{"from", "join", "update"}, before.text) && !notRelations[this.text] && at(tokens, i, -4).text != "extract":
			qualified.WriteString("pg_catalog.")
		}
		qualified.WriteString(this.source)
	}
	return qualified.String(), errors.Join(problems...)
}

type token struct {
	kind   string
	text   string // a word in lower case, with what qualifies it
	source string
	start  int
}

var tokenPattern = regexp.MustCompile(`(?s)^(?:` +
	`(?P<space>(?:\s|--[^\n]*|/\*.*?\*/)+)|` +
	`(?P<literal>[eE]?'(?:[^']|'')*')|` +
	`(?P<word>(?:[A-Za-z_]\w*|"[^"]*")(?:\.(?:[A-Za-z_]\w*|"[^"]*"|\*))*)|` +
	`(?P<qualified>\.[-+*/<>=~!@#%^&|?]+)|` + // of operator(pg_catalog.=), whose words come before
	`(?P<value>\$\d+|@[A-Za-z_]\w*|\d+(?:\.\d+)?|:=|=>|::|\.\.)|` +
	`(?P<operator>[-+*/<>=~!@#%^&|?]+)|` +
	`(?P<other>.))`)

func tokenize(text string) (tokens []token) {
	for start := 0; start < len(text); {
		match := tokenPattern.FindStringSubmatch(text[start:])
		next := token{source: match[0], text: match[0], start: start}
		for i, name := range tokenPattern.SubexpNames() {
			if name != "" && match[i] != "" {
				next.kind = name
			}
		}
		if next.kind == "word" {
			next.text = strings.ToLower(next.text)
		}
		tokens = append(tokens, next)
		start += len(match[0])
	}
	return tokens
}

// at is the token some places before or after another one, white space and comments left out.
func at(tokens []token, i, distance int) token {
	step := 1
	if distance < 0 {
		step = -1
	}
	for distance != 0 {
		i += step
		if i < 0 || i >= len(tokens) {
			return token{}
		}
		if tokens[i].kind != "space" {
			distance -= step
		}
	}
	return tokens[i]
}

// namesOf are the names that a text gives: those of common table expressions, and of rows with their columns, as in as item (a, b).
func namesOf(tokens []token) map[string]bool {
	names := map[string]bool{}
	for i, this := range tokens {
		if this.kind != "word" {
			continue
		}
		before, after := at(tokens, i, -1), at(tokens, i, +1)
		isCommon := before.text == "with" || before.text == "recursive" || before.text == "," && after.text == "as" && at(tokens, i, +2).text == "("
		if isCommon && !notFunctions[this.text] {
			names[this.text] = true
		}
	}
	return names
}

// isOperator reports whether a token is an operator, and not another use of the same characters.
func isOperator(tokens []token, i int) bool {
	before := at(tokens, i, -1)
	switch tokens[i].text {
	case "*": // all columns, all rows
		return !slices.Contains([]string{"select", "(", ",", "returning"}, before.text)
	case "=": // assignments: set a = b, set (a, b) = (c, d), raise … using message = 'x'
		return at(tokens, i, -2).text != "set" && at(tokens, i, -2).text != "local" && !isColumnList(tokens, i) && !raised[before.text]
	}
	return true
}

// isColumnList reports whether what stands before an equals sign is the list of set (a, b) = ….
func isColumnList(tokens []token, i int) bool {
	distance := -1
	if at(tokens, i, distance).text != ")" {
		return false
	}
	for at(tokens, i, distance).text != "(" {
		if distance--; at(tokens, i, distance).text == "" {
			return false
		}
	}
	return at(tokens, i, distance-1).text == "set"
}

// isType reports whether a word stands where a type does: after ::, in cast(a as type), or where a variable is declared.
func isType(tokens []token, i int) bool {
	before := at(tokens, i, -1)
	if before.text == "::" || before.text == "constant" {
		return true
	}
	after := at(tokens, i, +1)
	isCast := before.text == "as" && (after.text == ")" || after.text == "[")
	isVariable := before.kind == "word" && !strings.Contains(before.text, ".") && !breaks[before.text] && !notFunctions[before.text]
	return types[tokens[i].text] && (isCast || isVariable)
}

// How tightly operators bind where they have no schema.
const loosest = 99

func bindingOf(operator string) int {
	switch operator {
	case "<", ">", "=", "<=", ">=", "<>", "!=":
		return 1
	case "+", "-":
		return 3
	case "*", "/", "%":
		return 4
	case "^":
		return 5
	}
	return 2
}

var (
	// Comparisons that name no operator, and that cannot be given a schema.
	advice = map[string]string{
		"like": "write ~~", "ilike": "write ~~*", "similar": "write ~", "between": "write >= and <=", "nullif": "write case when … <> … then … end",
		"natural": "write on …", "overlaps": "compare the bounds",
	}
	// Types that the grammar knows, and the others that this repository uses.
	grammarTypes = set("int integer bigint smallint boolean interval numeric decimal real float double char varchar character bit time timestamp")
	types        = set("text uuid json jsonb timestamptz float8 int4 int8 bool bytea oid name record regclass regrole regnamespace regprocedure")
	// Words between expressions.
	breaks = set(`and or not select from join left right inner cross lateral on where having when then else end order group by limit offset as in is return if
		elsif loop while exit continue perform into set values returning union using over filter within begin declare exception raise for update
		delete insert call with recursive distinct`)
	// What may stand before a parenthesis without being a function that is looked up.
	notFunctions = set(`coalesce greatest least array exists values cast row any all some case extract operator int varchar numeric interval key materialized
		execute only`)
	notRelations = set("lateral only select rows skip nowait")
	// What raise … using sets.
	raised = set("errcode message detail hint column constraint datatype table schema")
)

func init() {
	for word := range breaks {
		notFunctions[word] = word != "left" && word != "right"
	}
}

func set(words string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}
