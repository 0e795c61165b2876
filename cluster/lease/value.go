package lease

import "encoding/json"

// A Value is the content of the lease.
type Value struct {
	Holder  string `json:"holder"`
	Counter uint64 `json:"counter"` // of its holder's writes, from 1
	Epoch   uint64 `json:"epoch"`   // of the keeper; 0: it is not minted yet
	// Snapshot holds the keeper's knowledge for the next keeper. It is opaque here.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
}

// Marshal returns the value as it is written.
func (v Value) Marshal() []byte {
	text, err := json.Marshal(v)
	if err != nil { // a snapshot that is no JSON is left out
		v.Snapshot = nil
		text, _ = json.Marshal(v)
	}
	return text
}

// Parse reads what Marshal has written; false for anything else.
func Parse(text []byte) (v Value, ok bool) {
	err := json.Unmarshal(text, &v)
	return v, err == nil && v.Holder != ""
}
