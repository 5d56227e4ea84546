package jobs

import (
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// inputPlaces says, by run number, where an input that is stored beside the events of the run
// counts.
type inputPlaces map[int32]db.InputPlacesRow

// placesOf converts the answer of InputPlaces.
func placesOf(rows []db.InputPlacesRow, err error) (inputPlaces, error) {
	places := make(inputPlaces, len(rows))
	for _, row := range rows {
		places[row.RunNo] = row
	}
	return places, err
}

// seqs returns the places at which BatchesBetween returns the inputs.
func (p inputPlaces) seqs() []int64 {
	seqs := make([]int64, 0, len(p))
	for _, place := range p {
		seqs = append(seqs, place.Seq)
	}
	return seqs
}

// awaitsStart reports whether a RUN_STARTED that is yet to come would change what the events of a
// run mean.
func (p inputPlaces) awaitsStart(runNo int32) bool {
	place, has := p[runNo]
	return has && !place.IsStart
}

// applyBatch folds a batch, and the input of its run if that counts there.
func (p inputPlaces) applyBatch(fold *compaction.Fold, batch db.BatchesBetweenRow) error {
	if batch.Input == nil {
		return fold.ApplyBatch(batch.Events)
	}
	seq := batch.FirstSeq
	for event, err := range compaction.Split(batch.Events) {
		if err != nil {
			return err
		}
		p.apply(fold, batch, seq, event)
		seq++
	}
	return fold.Err()
}

// apply folds one event of a batch.
func (p inputPlaces) apply(fold *compaction.Fold, batch db.BatchesBetweenRow, seq int64, event []byte) {
	if place := p[batch.RunNo]; batch.Input != nil && place.Seq == seq {
		if place.IsStart {
			event = compaction.WithInput(event, batch.Input)
		} else {
			fold.ApplyInput(batch.Input)
		}
	}
	fold.Apply(event)
}
