package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const maxTokenFileBytes = 4 << 20

// readTokenFile reads the file of static tokens. Its errors never have the value of sha256, because
// it may be the token itself by mistake.
func readTokenFile(name string) ([]staticToken, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if len(text) > maxTokenFileBytes {
		return nil, fmt.Errorf("tokens: %s is larger than %d bytes", name, maxTokenFileBytes)
	}
	return parseTokens(name, text)
}

// parseTokens reads YAML, and JSON as a part of it: one parser, and a line for each error.
func parseTokens(name string, text []byte) ([]staticToken, error) {
	var document, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&document)
	if err == nil && !errors.Is(decoder.Decode(&next), io.EOF) {
		err = errors.New("more than one document")
	}
	switch {
	case errors.Is(err, io.EOF):
		// The file may be half written: if it counted as an empty list, it would lock all clients out.
		return nil, fmt.Errorf("tokens: %s is empty (expected a list of tokens, [] for none)", name)
	case err != nil:
		return nil, fmt.Errorf("tokens: %s: %.200s", name, printable(strings.TrimPrefix(err.Error(), "yaml: ")))
	case document.Content[0].Kind != yaml.SequenceNode:
		return nil, fmt.Errorf("tokens: %s: expected a list of tokens", name)
	}
	tokens := []staticToken{}
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for i, entry := range document.Content[0].Content {
		token, err := parseToken(entry)
		if err == nil {
			switch {
			case names[token.Subject]:
				err = entryError{entry.Line, "another token has the same name"}
			case hashes[token.hash]:
				err = entryError{entry.Line, "another token has the same sha256"}
			}
		}
		if err != nil {
			label := fmt.Sprintf("token %d", i+1)
			if token.Subject != "" {
				label += fmt.Sprintf(" (%.60q)", token.Subject)
			}
			line := entry.Line
			if at, isEntryError := errors.AsType[entryError](err); isEntryError {
				line = at.line
			}
			return nil, fmt.Errorf("tokens: %s:%d: %s: %w", name, line, label, err)
		}
		names[token.Subject], hashes[token.hash] = true, true
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// entryError is what is wrong with an entry, and where.
type entryError struct {
	line int
	text string
}

func (e entryError) Error() string { return e.text }

// parseToken reads an entry. If it fails, the name is still returned where it is known.
func parseToken(entry *yaml.Node) (token staticToken, err error) {
	if entry.Kind != yaml.MappingNode {
		return token, entryError{entry.Line, "expected a mapping with name, sha256, scope and rights"}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		key, value := entry.Content[i], entry.Content[i+1]
		fail := func(format string, arguments ...any) error {
			return entryError{key.Line, fmt.Sprintf(format, arguments...)}
		}
		if seen[key.Value] {
			return token, fail("member %.60q stands twice", key.Value)
		}
		seen[key.Value] = true
		isText := value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str"
		switch key.Value {
		case "name":
			if !isText || value.Value == "" {
				return token, fail("name must be a string that is not empty")
			}
			if err := checkName(value.Value); err != nil {
				return token, fail("name is %v", err)
			}
			token.Subject, token.TokenID = value.Value, value.Value
		case "sha256":
			hash, err := hex.DecodeString(value.Value) // digits alone are no string in YAML, but still a hash
			if err != nil || len(hash) != sha256.Size {
				return token, fail("sha256 must be the hash of the token, 64 hex digits")
			}
			token.hash = [sha256.Size]byte(hash)
		case "scope":
			if !isText {
				return token, fail("scope must be a string (put it in quotes)")
			}
			if err := checkName(value.Value); err != nil {
				return token, fail("scope is %v", err)
			}
			token.Scope = value.Value
		case "rights":
			if value.Kind != yaml.SequenceNode || len(value.Content) == 0 {
				return token, fail("rights must be a list of some of: %s", strings.Join(rightNames, ", "))
			}
			for _, item := range value.Content {
				right, known := rightNamed(item.Value)
				if !known {
					return token, fail("unknown right %.40q (expected some of: %s)", item.Value, strings.Join(rightNames, ", "))
				}
				token.Rights |= right
			}
		case "expires":
			token.Expires, err = time.Parse(time.RFC3339, value.Value)
			if err != nil || token.Expires.IsZero() {
				return token, fail("expires must be a time such as 2027-01-31T00:00:00Z")
			}
		default:
			return token, fail("unknown member %.60q (expected name, sha256, scope, rights, expires)", key.Value)
		}
	}
	for _, required := range []string{"name", "sha256", "scope", "rights"} {
		if !seen[required] {
			return token, entryError{entry.Line, "the member " + required + " is missing"}
		}
	}
	return token, nil
}
