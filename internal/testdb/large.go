package testdb

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// FillLarge makes the thread "large", of which each list has so many stored documents with so many bytes each: runs run-1, run-2, … with
// inputs, texts, tool calls and their results, session state, versions of it under the key "key", and checkpoints.
func FillLarge(t testing.TB, pool *pgxpool.Pool, rows, size int) {
	t.Helper()
	for n := 1; n <= rows; n++ {
		// In two calls, because a call has a limit.
		Exec(t, pool, `select agui.append('large', 'run-' || $1::int, ('[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m' || $1 || '","role":"assistant"},
			{"type":"TEXT_MESSAGE_CONTENT","messageId":"m' || $1 || '","delta":"' || large || '"},{"type":"TEXT_MESSAGE_END","messageId":"m' || $1 || '"},
			{"type":"STATE_SNAPSHOT","snapshot":{"large":"' || large || '"}}]')::json,
			input => ('{"messages":[{"id":"u' || $1 || '","role":"user","content":[{"type":"image","source":{"type":"data","mimeType":"image/png","value":"' || large || '"}}]}]}')::json)
			from repeat('aW1n', $2::int / 4) as large`, n, size)
		Exec(t, pool, `select agui.append('large', 'run-' || $1::int, ('[{"type":"TOOL_CALL_START","toolCallId":"c' || $1 || '","toolCallName":"find"},
			{"type":"TOOL_CALL_ARGS","toolCallId":"c' || $1 || '","delta":"\"' || large || '\""},{"type":"TOOL_CALL_END","toolCallId":"c' || $1 || '"},
			{"type":"TOOL_CALL_RESULT","toolCallId":"c' || $1 || '","messageId":"r' || $1 || '","content":"' || large || '"},{"type":"RUN_FINISHED"}]')::json)
			from repeat('aW1n', $2::int / 4) as large`, n, size)
		Exec(t, pool, `select agui.save_session_state('large', 'key-' || $1::int, to_json(large)), agui.save_session_state('large', 'key', to_json(large), overwrite => true),
			agui.save_checkpoint('large', 'c' || $1, to_json(large), case when $1 > 1 then 'c' || $1 - 1 end) from repeat('x', $2::int) as large`, n, size)
	}
}

// CountBytes makes the connections of a pool count the bytes that come from the server.
func CountBytes(config *pgxpool.Config) (received *atomic.Int64) {
	received = &atomic.Int64{}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return countingConn{connection, received}, nil
	}
	return received
}

type countingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countingConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.received.Add(int64(n))
	return n, err
}
