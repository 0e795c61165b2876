package event

import "github.com/headrace/headrace/observe"

// StoppedLane is a lane of a file with lanes to which nothing is sent any more.
type StoppedLane struct {
	Lane    string `json:"lane"`
	Account string `json:"account,omitempty"` // that stopped, with all its lanes; absent: the lane alone has
	Cause   string `json:"cause"`
	Advice  string `json:"advice"` // what to do about it
}

// MostStopped bounds the stopped lanes that a summary lists: each may need half a kilobyte.
const MostStopped = 32

// Words says why the lane has stopped, and what to do.
func (s StoppedLane) Words() string {
	if s.Advice == "" {
		return s.Cause
	}
	return s.Cause + "; " + s.Advice
}

// ByAccount puts the stopped lanes of one account together, with their names in a list.
func ByAccount(stops []StoppedLane) (all []StoppedLane) {
	at := map[string]int{}
	for _, s := range stops {
		n, known := at[s.Account]
		if known && s.Account != "" {
			all[n].Lane += ", " + s.Lane
			continue
		}
		at[s.Account], all = len(all), append(all, s)
	}
	return all
}

// Account sums up the lanes of one account, of a file with lanes.
type Account struct {
	Account      string   `json:"account"`
	Lanes        int      `json:"lanes"`
	Answered     int      `json:"answered"`
	USD          *float64 `json:"usd"`      // as far as it is known; null: nothing of it has a price
	Unpriced     int      `json:"unpriced"` // items
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
}

// AccountsOf returns the accounts of which several lanes have ended items, in the order of their
// lanes.
func AccountsOf(lanes []observe.Lane) (several []Account) {
	at := map[string]int{}
	var all []Account
	for i := range lanes {
		l := &lanes[i]
		if l.Account == "" || l.Spent.Priced+l.Spent.Unpriced == 0 {
			continue
		}
		n, known := at[l.Account]
		if !known {
			n = len(all)
			at[l.Account], all = n, append(all, Account{Account: l.Account})
		}
		a := &all[n]
		a.Lanes, a.Answered, a.Unpriced = a.Lanes+1, a.Answered+l.Answered, a.Unpriced+l.Spent.Unpriced
		a.InputTokens, a.OutputTokens = a.InputTokens+l.Spent.InputTokens, a.OutputTokens+l.Spent.OutputTokens
		if l.Spent.Priced > 0 {
			if a.USD == nil {
				a.USD = new(float64)
			}
			*a.USD += l.Spent.USD
		}
	}
	for _, a := range all {
		if a.Lanes > 1 {
			several = append(several, a)
		}
	}
	return several
}

// OfFile reports whether the lanes are those of a file: each of them has an account, and no other
// lane has one.
func (p *Progress) OfFile() bool { return len(p.Lanes) > 0 && p.Lanes[0].Account != "" }

// LanesWord is the word that people read for several lanes. Without a file there is one for each
// model.
func (p *Progress) LanesWord() string { return lanesWord(p.OfFile()) }

func (s *scene) lanesWord() string { return lanesWord(s.ofFile()) }

func (s *scene) ofFile() bool { return len(s.p.Lanes) > 0 && s.p.Lanes[0].Account != "" }

func lanesWord(ofFile bool) string {
	if ofFile {
		return "lanes"
	}
	return "models"
}
