package jobs

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// inputs are those that are stored beside the events of runs.
type inputs struct {
	places  map[int32]db.InputPlacesRow // by run number, where they count
	inParts map[int32]compaction.Input  // those that are stored in parts; batches bring the others
	bytes   int                         // of the texts in inParts
}

// readInputs reads where the inputs of runs count, given the seqs up to which their logs are read, and those that are stored in parts.
// Messages with one of the known ids come without their text.
func readInputs(ctx context.Context, queries *db.Queries, key pgtype.UUID, runNumbers []int32, throughSeqs []int64, known []string) (read inputs, err error) {
	rows, err := queries.InputPlaces(ctx, db.InputPlacesParams{ThreadKey: key, RunNos: runNumbers, ThroughSeqs: throughSeqs})
	if err != nil {
		return inputs{}, err
	}
	read.places = make(map[int32]db.InputPlacesRow, len(rows))
	var numbers []int32
	for _, row := range rows {
		read.places[row.RunNo] = row
		if row.InParts {
			numbers = append(numbers, row.RunNo)
		}
	}
	if numbers == nil {
		return read, nil
	}
	stored, err := queries.InputsInParts(ctx, db.InputsInPartsParams{ThreadKey: key, RunNos: numbers})
	if err != nil {
		return inputs{}, err
	}
	var partNumbers []int32
	for _, input := range stored {
		partNumbers = append(partNumbers, input.PartNos...)
	}
	slices.Sort(partNumbers)
	// PostgreSQL has no text for some ids, and writes backslashes in their place.
	known = slices.DeleteFunc(slices.Clone(known), func(id string) bool { return strings.ContainsAny(id, "\x00\\") || !utf8.ValidString(id) })
	parts, err := queries.InputMessages(ctx, db.InputMessagesParams{ThreadKey: key, PartNos: slices.Compact(partNumbers), KnownIds: known})
	if err != nil {
		return inputs{}, err
	}
	messages := make(map[int32]compaction.InputMessage, len(parts))
	for _, part := range parts {
		messages[part.PartNo] = compaction.InputMessage{ID: part.MessageID, HasID: part.HasID, Bytes: int(part.Bytes), JSON: part.Body}
		read.bytes += len(part.Body)
	}
	read.inParts = make(map[int32]compaction.Input, len(stored))
	for _, input := range stored {
		whole := compaction.Input{JSON: input.Rest, SeparatorBytes: int(input.SeparatorBytes)}
		// Otherwise the parts stand in a copy of the list elsewhere in the input, and the list itself is whole.
		if isEmptyList(rawjson.MemberOf(input.Rest, "messages")) {
			for _, number := range input.PartNos {
				whole.Messages = append(whole.Messages, messages[number])
			}
		}
		read.inParts[input.RunNo] = whole
		read.bytes += len(input.Rest)
	}
	return read, nil
}

func isEmptyList(value []byte) bool {
	for range rawjson.Elements(value) {
		return false
	}
	return true
}

// readAsStored makes a fold read the ids of messages from their text.
func (in inputs) readAsStored() {
	for _, input := range in.inParts {
		for i := range input.Messages {
			input.Messages[i].HasID = false
		}
	}
}

// seqs returns the places at which BatchesBetween returns the inputs.
func (in inputs) seqs() []int64 {
	seqs := make([]int64, 0, len(in.places))
	for _, place := range in.places {
		seqs = append(seqs, place.Seq)
	}
	return seqs
}

// awaitsStart reports whether a RUN_STARTED that is yet to come would change what the events of a
// run mean.
func (in inputs) awaitsStart(runNo int32) bool {
	place, has := in.places[runNo]
	return has && !place.IsStart
}

// countsIn reports whether an input counts at an event of a batch.
func (in inputs) countsIn(batch db.BatchesBetweenRow) bool {
	place, has := in.places[batch.RunNo]
	return has && batch.FirstSeq <= place.Seq && place.Seq < batch.FirstSeq+int64(batch.N)
}

// applyBatch folds a batch, and the input of its run if that counts there. It returns the number of
// events.
func (in inputs) applyBatch(fold *compaction.Fold, batch db.BatchesBetweenRow) (n int, err error) {
	fold.Locate(batch.RunID, batch.FirstSeq)
	if !in.countsIn(batch) {
		return fold.ApplyBatch(batch.Events)
	}
	for event, err := range compaction.Split(batch.Events) {
		if err != nil {
			return n, err
		}
		in.apply(fold, batch, batch.FirstSeq+int64(n), event)
		n++
	}
	return n, fold.Err()
}

// apply folds one event of a batch.
func (in inputs) apply(fold *compaction.Fold, batch db.BatchesBetweenRow, seq int64, event []byte) {
	fold.Locate(batch.RunID, seq)
	place, has := in.places[batch.RunNo]
	if !has || place.Seq != seq {
		fold.Apply(event)
		return
	}
	input, has := in.inParts[batch.RunNo]
	if !has {
		input.JSON = batch.Input
	}
	if place.IsStart {
		fold.ApplyInput(event, input)
		return
	}
	fold.ApplyInput(nil, input)
	fold.Apply(event)
}
