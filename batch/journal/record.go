package journal

import (
	"fmt"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/provider/rawjson"
)

// A Record is a line of an output, or of its errors file, in parts. It is good until the function
// that got it returns.
type Record struct {
	Text     []byte           // the line as it stands, with its line feed
	Offset   int64            // of the line in its file
	Failed   bool             // the line is of the errors file
	Members  []rawjson.Member // of the line
	Headrace []rawjson.Member // of what headrace adds
}

// Records passes each item of an output to take: the results, then those that failed for good, as
// ReadItems counts them. It reads the output once, and remembers only items of the errors file. A
// line's sum is proof enough that it is as it was written. The errors are those of ReadJournal, and
// those of take; take may have got lines before.
func Records(output, errorsPath string, take func(*Record) error) error {
	_, err := eachItem(output, errorsPath, func(_ keys.Sum, r *Record, _ *Parser) error { return take(r) })
	return err
}

// eachItem is Records, with the key of each item and the parser that has read it. It returns the journal of the output.
//
// It reads the errors file twice: before the output, to know which of its items have a result, and after it. A run may have
// written that file anew in between.
func eachItem(output, errorsPath string, visit func(keys.Sum, *Record, *Parser) error) (*Journal, error) {
	failures, err := ReadErrorsOf(output, errorsPath, output)
	if err != nil {
		return nil, err
	}
	places, err := failures.unaskedPlaces()
	if err != nil {
		return nil, fmt.Errorf("journal: read %s: %w", errorsPath, err)
	}
	var answered KeySet // failed items that have a result by now
	var record Record
	results := &Journal{path: output, noKeys: true}
	results.onLine = func(text []byte, sum keys.Sum, p *Parser) error {
		if failures.Keys.sums.Has(sum) {
			answered.add(sum)
		}
		if len(places) > 0 && places[p.itemPlace()] {
			places[p.itemPlace()] = false
		}
		record = Record{Text: text, Offset: results.Size, Members: p.line.Members, Headrace: p.inner}
		return visit(sum, &record, p)
	}
	if _, err = results.load(nil); err != nil {
		return nil, err
	}
	if failures, err = ReadErrorsOf(output, errorsPath, output); err != nil {
		return nil, err
	}
	latest, err := failures.latest()
	if err != nil {
		return nil, fmt.Errorf("journal: read %s: %w", errorsPath, err)
	}
	offset := int64(0)
	err = failures.each(func(n int, sum keys.Sum, text []byte, p *Parser) error {
		record = Record{Text: text, Offset: offset, Failed: true, Members: p.line.Members, Headrace: p.inner}
		offset += int64(len(text))
		last, several := latest[sum]
		stands, known := places[p.itemPlace()]
		if !failures.isOurs(p) || answered.sums.Has(sum) || several && last != n || p.neverAsked() && known && !stands {
			return nil
		}
		return visit(sum, &record, p)
	})
	if err != nil {
		return nil, fmt.Errorf("journal: read %s: %w", errorsPath, err)
	}
	return results, nil
}

// Record reads a line that Records has passed before, as fast.
func (p *Parser) Record(text []byte) (Record, error) {
	p.trustsSum = true
	_, fault, err := p.read(text)
	if err != nil {
		return Record{}, ErrChanged
	}
	return Record{Text: text, Failed: !rawjson.IsNull(fault), Members: p.line.Members, Headrace: p.inner}, nil
}

// unaskedPlaces returns the places of lines that could not be asked, each true. One that was corrected has a
// result in the same place, under another key.
func (j *Journal) unaskedPlaces() (places map[string]bool, err error) {
	return places, j.each(func(_ int, _ keys.Sum, _ []byte, p *Parser) error {
		if j.isOurs(p) && p.neverAsked() {
			if places == nil {
				places = make(map[string]bool)
			}
			places[p.itemPlace()] = true
		}
		return nil
	})
}

// neverAsked reports whether the line read last is about an input line that could not be asked.
func (p *Parser) neverAsked() bool {
	p.scratch = rawjson.Members(p.fault, p.scratch[:0])
	code := string(rawjson.Unquote(memberValue(p.scratch, "code")))
	return code == CodeInvalidLine || code == CodeUntranslatable
}

// itemPlace names the item of the line read last: if two lines of an input give one id, it is good in one of them.
func (p *Parser) itemPlace() string {
	return string(memberValue(p.inner, "line")) + " " + string(rawjson.Unquote(p.id))
}
