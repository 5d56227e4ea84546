package pgagui

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/db"
)

// MessageAttachment is a part of a message that holds data: an image, a file.
type MessageAttachment struct {
	// N is its number in the conversation, from 1.
	N         int    `json:"n"`
	MessageID string `json:"messageId"`
	// Type is what the part calls itself: image, audio, video, document, binary.
	Type string `json:"type"`
	// MIMEType and Filename are what the client said, and may be wrong; empty: it said nothing.
	MIMEType string `json:"mimeType,omitempty"`
	Filename string `json:"filename,omitempty"`
	// Bytes is the size of the decoded data.
	Bytes int64 `json:"bytes"`
}

// Attachments returns what the messages at a point of a thread hold as data. Parts that name a URL are left out.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Attachments(ctx context.Context, threadID string, at At) ([]MessageAttachment, error) {
	rows, err := s.of(threadID).Attachments(ctx, db.AttachmentsParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.AttachmentsRow) MessageAttachment {
		return MessageAttachment{
			N: int(row.N), MessageID: row.MessageID, Type: row.Type, MIMEType: row.MimeType, Filename: row.Filename, Bytes: row.Bytes,
		}
	})
}

// AttachmentData returns what the attachment number n of a point of a thread holds.
//
// Errors: ErrUnknownAttachment if there is no such number, or if its text is not base64; ErrUnknownThread, ErrUnknownRun, ErrKeyCollision,
// ErrQuarantined, ErrFoldLimit.
func (s *Store) AttachmentData(ctx context.Context, threadID string, n int, at At) (MessageAttachment, []byte, error) {
	row, err := s.of(threadID).AttachmentData(ctx, db.AttachmentDataParams{
		ThreadID: threadID, N: int32(min(max(n, 0), 1<<31-1)), RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return MessageAttachment{}, nil, unknown(ErrUnknownAttachment, "thread %q has no attachment number %d there", threadID, n)
	case err != nil:
		return MessageAttachment{}, nil, ErrorOf(err)
	case row.Data == nil:
		return MessageAttachment{}, nil, unknown(ErrUnknownAttachment, "the data of attachment number %d of thread %q is not base64", n, threadID)
	}
	return MessageAttachment{
		N: n, MessageID: row.MessageID, Type: row.Type, MIMEType: row.MimeType, Filename: row.Filename, Bytes: int64(len(row.Data)),
	}, row.Data, nil
}
