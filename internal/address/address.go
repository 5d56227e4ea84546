// Package address parses the address of a database. An address may hold a password, so errors never quote it.
package address

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Connect opens a connection for statements that are sent once each. It prepares none, so it may go through a pooler.
func Connect(ctx context.Context, address string) (*pgx.Conn, error) {
	config, err := Parse(address)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// Parse is pgx.ParseConfig for statements that are sent once each, with errors that quote no part of the address.
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
	if err == nil && !saysHowToExecute(config.ConnString()) {
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
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
