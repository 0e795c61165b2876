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

// ByAccount merges the stopped lanes of one account into one, with their names as a list.
func ByAccount(stops []StoppedLane) (all []StoppedLane) {
	indexOf := map[string]int{}
	for _, s := range stops {
		index, known := indexOf[s.Account]
		if known && s.Account != "" {
			all[index].Lane += ", " + s.Lane
			continue
		}
		indexOf[s.Account], all = len(all), append(all, s)
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

// AccountsOf returns the accounts of which several lanes have ended items, in the order of their lanes.
func AccountsOf(lanes []observe.Lane) (several []Account) {
	indexOf := map[string]int{}
	var accounts []Account
	for i := range lanes {
		lane := &lanes[i]
		if lane.Account == "" || lane.Spent.Priced+lane.Spent.Unpriced == 0 {
			continue
		}
		index, known := indexOf[lane.Account]
		if !known {
			index = len(accounts)
			indexOf[lane.Account], accounts = index, append(accounts, Account{Account: lane.Account})
		}
		account := &accounts[index]
		account.Lanes, account.Answered, account.Unpriced = account.Lanes+1, account.Answered+lane.Answered, account.Unpriced+lane.Spent.Unpriced
		account.InputTokens, account.OutputTokens = account.InputTokens+lane.Spent.InputTokens, account.OutputTokens+lane.Spent.OutputTokens
		if lane.Spent.Priced > 0 {
			if account.USD == nil {
				account.USD = new(float64)
			}
			*account.USD += lane.Spent.USD
		}
	}
	for _, account := range accounts {
		if account.Lanes > 1 {
			several = append(several, account)
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

func (s *scene) ofFile() bool { return len(s.snapshot.Lanes) > 0 && s.snapshot.Lanes[0].Account != "" }

func lanesWord(ofFile bool) string {
	if ofFile {
		return "lanes"
	}
	return "models"
}
