package rawjson

// A Walk goes through the members of an object, or the elements of an array. Next stops before
// a value. Its caller then passes over the value, by Skip, or by a walk Into it that Leave
// brings to its end:
//
//	for w := WalkIn(object); w.Next(); {
//		if string(w.Name) == "model" {
//			model = w.Skip()
//		} else {
//			w.Skip()
//		}
//	}
//
// It allocates nothing but for names with escapes in them. In a text that is not JSON it ends
// somewhere, and its results mean nothing.
type Walk struct {
	Name []byte // of the next value, without quotes and escapes; nil in an array

	b     []byte
	i     int  // where the next value begins
	start int  // where its name's quote opens
	list  bool // an array
}

// WalkIn returns a walk through value, which has no white space before it. The walk is empty if
// value is neither an object nor an array.
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

// Ahead returns the text from the next value on.
func (w *Walk) Ahead() []byte { return w.b[w.i:] }

// Skip passes over the value and returns it.
func (w *Walk) Skip() []byte {
	start := w.i
	w.i = SkipValue(w.b, start)
	return w.b[start:w.i]
}

// Into begins a walk through the next value, which is an object or an array.
func (w *Walk) Into() Walk { return Walk{b: w.b, i: w.i + 1, list: w.b[w.i] == '['} }

// Leave passes over the value that in has walked through to its end.
func (w *Walk) Leave(in *Walk) { w.i = in.i }

// Lookup returns the value of the first member of that name, nil if an object has none, or
// object is not an object.
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
