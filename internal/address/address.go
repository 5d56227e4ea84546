// Package address parses the address of a database. An address may hold a password, so errors never quote it.
package address

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Parse is pgx.ParseConfig with errors that quote no part of the address.
func Parse(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err == nil && (strings.Contains(config.Host, "@") || hasMisplacedAt(address)) {
		return nil, errors.New(`the address of the database has an "@" in the wrong place: in a password, write @ as %40, / as %2F, # as %23, ? as %3F and % as %25`)
	}
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		// pgx masks passwords, but does not recognize all of them.
		reason := err.Error()
		return nil, fmt.Errorf("the address of the database cannot be read: %s", reason[strings.LastIndexByte(reason, '`')+1:][len(": "):])
	}
	return config, err
}

// hasMisplacedAt reports whether a URL has an @ not before the host but in its path, which begins where a password has a slash in it.
func hasMisplacedAt(address string) bool {
	_, rest, isURL := strings.Cut(address, "://")
	rest, _, _ = strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	return isURL && strings.Contains(path, "@") && !strings.Contains(authority, "@")
}
