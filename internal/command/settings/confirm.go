package settings

import (
	"errors"
	"fmt"
)

// usualConfirm is the cost of a run, in USD, above which a person is asked: more than most people
// spend without a look.
const usualConfirm = 100

// checkConfirm refuses what is no amount of money.
func (f *Flags) checkConfirm() error {
	if f.ConfirmAbove >= 0 { // NaN fails too
		return nil
	}
	return fmt.Errorf("--confirm-above: %v is not an amount of money: want USD, 0 or more", f.ConfirmAbove)
}

// checkPilot refuses a pilot whose answers the rest of the run could not find: it would buy them again.
func (f *Flags) checkPilot() error {
	if f.Pilot > 0 && f.ToStdout() {
		return errors.New("--pilot: the results of a pilot need a file: name one with -o")
	}
	return AtLeast("pilot", f.Pilot, 0)
}

// Confirms reports whether the user may be asked about the cost of the run. No flag may answer the question
// in advance, and no program may read what is shown.
func (f *Flags) Confirms() bool {
	capped := f.All.Lookup("max-cost")
	simulated := f.Provider == ProviderSim
	if f.Fleet != nil {
		simulated, _ = f.Fleet.simulated()
	}
	return !f.Yes && f.Progress != ProgressJSON && !simulated && (capped == nil || !capped.Changed)
}
