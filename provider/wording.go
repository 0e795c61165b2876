package provider

// decides is the kind that a vendor's or a dialect's own words say. What stands in the
// prose outweighs codes: whoever names it does so because the code beside it says less.
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

// decidesStatus is the kind that a status has of its own there.
func (w *Wording) decidesStatus(status int) (Kind, bool) {
	if w == nil {
		return Unknown, false
	}
	k, ok := w.Statuses[status]
	return k, ok
}
