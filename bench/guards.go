package bench

import (
	"context"
	"fmt"
)

// guards measures what two guards cost. It compares appends to a chained log, and appends through a
// function with the rights of its caller instead of its owner, with unmodified appends.
func (b *bench) guards(ctx context.Context) error {
	const writers, batch = 8, 20
	appending := func(name, prepare string) (side, *database, error) {
		database, err := b.server.create(ctx, writers)
		if err != nil {
			return side{}, nil, err
		}
		if _, err := database.Exec(ctx, prepare); err != nil {
			return side{}, nil, err
		}
		return b.appending(name, database, newStreams(writers, batch, b.bodies())), database, nil
	}
	const asIs = "as it is"
	for _, guard := range []struct{ name, prepare, target string }{
		{"chained", `select agui.enable_chain()`, "chain"},
		{"with the caller's rights", `alter function agui.append(text, text, json, bigint, json, text, boolean, boolean, text) security invoker`, ""},
	} {
		plain, without, err := appending(asIs, "select")
		if err != nil {
			return err
		}
		guarded, with, err := appending(guard.name, guard.prepare)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("append %d events a call, %d writers, %s", batch, writers, guard.name)
		measured, err := b.slicedRounds(ctx, what, appendSlices, guarded, plain)
		if err != nil {
			return err
		}
		measurement := Measurement{Phase: "guards", What: what, Unit: "events/s", Ours: Side{Name: guard.name}, Against: Side{Name: asIs}}
		if guard.target != "" {
			measurement.Target = atLeast(guard.target, 0.9)
		}
		b.report.add(measurement, measured[guard.name], measured[asIs])
		for _, database := range []*database{without, with} {
			if err := database.drop(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
