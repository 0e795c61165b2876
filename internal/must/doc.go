// Package must ends a test at the first error of its preparations.
//
//	must.Do(t, os.Mkdir(dir, 0o700))        an error ─▶ t.Fatal, at the line of the caller
//	text := must.Get(os.ReadFile(name))(t)  as well, and otherwise the value
//
// It promises nothing to production code: only tests import it. A test that is about an error looks at it by itself.
// It is a package of its own because the tests of most packages need it.
package must
