package rawjson

// A Walk goes through the members of an object, or the elements of an array. Next stops
// before a value, and whoever called it passes over the value, by Skip, or by a walk
// Into it that is brought to its end by Leave:
//
//	for w := WalkIn(object); w.Next(); {
//		if string(w.Name) == "model" {
//			model = w.Skip()
//		} else {
//			w.Skip()
//		}
//	}
//
// It allocates nothing but for names with escapes in them. On what is no JSON it comes
// to an end somewhere, and says what it likes.
type Walk struct {
	Name []byte // of the value that comes, without quotes and escapes; nil in an array

	b     []byte
	i     int  // where the value that comes begins
	start int  // where its name's quote opens
	list  bool // an array
}

// WalkIn is a walk through value, which has no white space before it. In what is neither
// an object nor an array there is nothing.
func WalkIn(value []byte) Walk {
	if len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return Walk{}
	}
	return Walk{b: value, i: 1, list: value[0] == '['}
}

// Next reports whether there is another value.
func (w *Walk) Next() bool {
	w.i = SkipSpace(w.b, w.i)
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i = SkipSpace(w.b, w.i+1)
	}
	if w.i < len(w.b) && (w.b[w.i] == '}' || w.b[w.i] == ']') {
		w.i++
		return false
	}
	if !w.list && !w.named() {
		w.i = len(w.b)
	}
	return w.i < len(w.b)
}

// named passes over a name.
func (w *Walk) named() bool {
	if w.start = w.i; w.i == len(w.b) || w.b[w.i] != '"' {
		return false
	}
	end := SkipString(w.b, w.i)
	w.Name = Unquote(w.b[w.i:end])
	if w.i = SkipSpace(w.b, end); w.i == len(w.b) || w.b[w.i] != ':' {
		return false
	}
	w.i = SkipSpace(w.b, w.i+1)
	return true
}

// Ahead is the text from the value that comes on.
func (w *Walk) Ahead() []byte { return w.b[w.i:] }

// Skip passes over the value and gives it.
func (w *Walk) Skip() []byte {
	start := w.i
	w.i = SkipValue(w.b, start)
	return w.b[start:w.i]
}

// Into begins a walk through the value that comes, which is an object or an array.
func (w *Walk) Into() Walk { return Walk{b: w.b, i: w.i + 1, list: w.b[w.i] == '['} }

// Leave passes over the value that in has walked through to its end.
func (w *Walk) Leave(in *Walk) { w.i = in.i }

// Lookup is the value of the first member of that name, nil if an object has none, or
// is no object.
func Lookup(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for w := WalkIn(object); w.Next(); {
		if value := w.Skip(); string(w.Name) == name {
			return value
		}
	}
	return nil
}
