package provider

// decides returns the kind that a vendor's or a dialect's own words give. Phrases of the prose
// outweigh codes: a Wording names a phrase because the code next to it says less.
func (w *Wording) decides(a *answer) (Kind, bool) {
	if w == nil {
		return Unknown, false
	}
	for i := range w.Phrases {
		if p := &w.Phrases[i]; p.Says != "" && a.says(p.Says) {
			return p.Kind, true
		}
	}
	for _, word := range a.words {
		if k, ok := w.Kinds[word]; ok {
			return k, true
		}
	}
	return Unknown, false
}

// decidesStatus returns the kind that the Wording gives to a status.
func (w *Wording) decidesStatus(status int) (Kind, bool) {
	if w == nil {
		return Unknown, false
	}
	k, ok := w.Statuses[status]
	return k, ok
}
