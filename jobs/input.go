package jobs

import (
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// inputPlaces says where the inputs that are stored beside the events of runs count, by run number.
type inputPlaces map[int32]db.InputPlacesRow

// placesOf takes the answer of InputPlaces.
func placesOf(rows []db.InputPlacesRow, err error) (inputPlaces, error) {
	places := make(inputPlaces, len(rows))
	for _, row := range rows {
		places[row.RunNo] = row
	}
	return places, err
}

// seqs are where BatchesBetween shall return the inputs.
func (p inputPlaces) seqs() []int64 {
	seqs := make([]int64, 0, len(p))
	for _, place := range p {
		seqs = append(seqs, place.Seq)
	}
	return seqs
}

// awaitsStart reports whether a RUN_STARTED that is still to come would change what the events of a run mean.
func (p inputPlaces) awaitsStart(runNo int32) bool {
	place, has := p[runNo]
	return has && !place.IsStart
}

// applyBatch folds a batch, with the input of its run where that counts there.
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
