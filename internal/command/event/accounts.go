package event

import "github.com/headrace/headrace/observe"

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
