package promptfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headrace/headrace/batch/prompts"
)

var (
	// ErrInput says that the input cannot be read.
	ErrInput = errors.New("the input cannot be read")
	// ErrHalted says that Config.Drain was closed before the first call.
	ErrHalted = errors.New("promptfile: stopped before the first call")
)

// Plan is what the check of an input has found, before any call.
type Plan struct {
	Items  int      // of the whole input, or of its first Reader.Limit
	Done   int      // of these, the ones with a result of an earlier run
	Failed int      // of these, the ones that failed for good in an earlier run, and are not tried again
	Bad    BadLines // that are no requests
}

// Left is how many items there are to do.
func (p *Plan) Left() int { return p.Items - p.Done - p.Failed }

// BadLines are the lines of an input that are no requests. As an error it says what is
// wrong with the first of them, a line each.
type BadLines struct {
	First []*prompts.LineError // prompts.MaxComplaints of them
	All   int
}

// Note takes err for a bad line. One that is none is given back: it ends the reading.
func (b *BadLines) Note(err error) error {
	var bad *prompts.LineError
	if !errors.As(err, &bad) {
		return err
	}
	if b.All++; len(b.First) < prompts.MaxComplaints {
		b.First = append(b.First, bad)
	}
	return nil
}

// Error has a line for each bad line that is known, and one for the others.
func (b *BadLines) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "promptfile: %d bad lines, nothing was called", b.All)
	for _, bad := range b.First {
		text.WriteString("\n" + bad.Error())
	}
	if more := b.All - len(b.First); more > 0 {
		fmt.Fprintf(&text, "\nand %d more", more)
	}
	return text.String()
}

// checkedEvery is how many items are checked before Watch is told: a few seconds' worth.
const checkedEvery = 1_000_000

// Plan reads a file to its end, or to its limit, and calls nothing. A stream is not read:
// its plan is empty. The error is ErrHalted, or tells why the input cannot be read on.
func (j *Job) Plan() (Plan, error) {
	var p Plan
	j.planned = true
	if j.cfg.Input.Stream {
		return p, nil
	}
	err := j.survey(&p)
	if err == nil {
		err = j.nameFirst(p.Bad.First)
	}
	j.plan = p
	return p, err
}

func (j *Job) survey(p *Plan) error {
	file, err := j.cfg.Input.Open()
	if err != nil {
		return fmt.Errorf("promptfile: %w: %w", err, ErrInput)
	}
	defer func() { _ = file.Close() }() // it was only read
	cfg := j.cfg.reader(false)
	cfg.Passing, cfg.NoKeys = true, j.past.empty()
	for req, err := range prompts.NewReader(file, cfg).All() {
		if j.halted() {
			return ErrHalted
		}
		if err != nil {
			if err = p.Bad.Note(err); err != nil {
				return err
			}
			continue
		}
		p.note(j.past.of(req.Key))
		if p.Items%checkedEvery == 0 && j.cfg.Watch.Checked != nil {
			j.cfg.Watch.Checked(p.Items)
		}
	}
	return nil
}

// note counts one item.
func (p *Plan) note(how endedHow) {
	p.Items++
	switch how {
	case endedWell:
		p.Done++
	case endedBadly:
		p.Failed++
	}
}

func (j *Job) halted() bool {
	select {
	case <-j.cfg.Drain:
		return true
	default:
		return false
	}
}

// nameFirst completes complaints about ids used twice: of most ids the reader
// remembers only that they were used, not where.
func (j *Job) nameFirst(bad []*prompts.LineError) error {
	if len(bad) == 0 {
		return nil
	}
	file, err := j.cfg.Input.Open()
	if err != nil {
		return fmt.Errorf("promptfile: %w: %w", err, ErrInput)
	}
	defer func() { _ = file.Close() }() // it was only read
	return prompts.FirstLines(file, j.cfg.reader(true), bad)
}
