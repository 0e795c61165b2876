package auth_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// keyFile is a file with that text, and how to put another text there.
func keyFile(t *testing.T, text string) (path string, write func(text string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "key")
	write = func(text string) {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(text)
	return path, write
}

func newFile(t *testing.T, path string) *auth.File {
	t.Helper()
	f := must.Get(auth.NewFile(path, "x-api-key", ""))(t)
	return f
}

// A key that has changed is in use after a second at most, and the file is not read for each
// call. While there is no key in the file, or no file, the latest one stays in use.
func TestFileIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, write := keyFile(t, " key-1\n")
		f := newFile(t, path)
		is := func(want string) {
			t.Helper()
			if got := applied(t, f).Header.Get("X-Api-Key"); got != want {
				t.Errorf("%q, not %q", got, want)
			}
		}
		is("key-1")
		write("key-2\r\n")
		is("key-1")
		time.Sleep(time.Second)
		is("key-2")
		for _, text := range []string{"", "two\nlines", "k\x00y", strings.Repeat("k", auth.MaxKeyFile+1)} {
			write(text)
			time.Sleep(time.Second)
			is("key-2")
		}
		must.Do(t, os.Remove(path))
		time.Sleep(time.Second)
		is("key-2")
		write("key-3")
		time.Sleep(time.Second)
		is("key-3")
	})
}

// A refused key is looked for once more, at once; one that is still in the file is final, for
// all who used it and for those who used one before. Another one begins anew.
func TestFileRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, write := keyFile(t, "key-1")
		f := newFile(t, path)
		refused := func(key string, want bool) {
			t.Helper()
			r := request(t)
			r.Header.Set("X-Api-Key", key)
			if got := f.Refused(r); got != want {
				t.Errorf("%s: %t", key, got)
			}
		}
		write("key-2")
		for range 64 { // as many as were in flight
			refused("key-1", true)
		}
		if got := applied(t, f).Header.Get("X-Api-Key"); got != "key-2" {
			t.Errorf("%q is in use", got)
		}
		refused("key-2", false)
		refused("key-2", false)
		refused("key-1", false)
		write("key-3")
		refused("key-2", true)
		refused("key-3", false)
		if f.Refused(request(t)) {
			t.Error("a request without a key")
		}
	})
}

// What cannot be a file with a key is said at once, without what is in it.
func TestFileWithoutKey(t *testing.T) {
	path, write := keyFile(t, "")
	for text, why := range map[string]string{
		"":              "no key",
		" \r\n":         "no key",
		"secret\nother": "more than one line",
		"secret\x01key": "a character",
		"\xff\xfes\x00": "a character",
		strings.Repeat("secret", auth.MaxKeyFile): "more than 16384 bytes",
	} {
		write(text)
		wrong(t, path, "x-api-key", why)
	}
	wrong(t, path+"-none", "x-api-key", "no such file")
	wrong(t, filepath.Dir(path), "x-api-key", "not a regular file")
	write("key-1")
	wrong(t, path, "x api key", "header")
}

func wrong(t *testing.T, path, header, why string) {
	t.Helper()
	_, err := auth.NewFile(path, header, "")
	var e *provider.Error
	switch {
	case !errors.As(err, &e) || e.Kind != provider.Misconfigured:
		t.Errorf("%v", err)
	case runtime.GOOS != "windows" && !strings.Contains(err.Error(), why), strings.Contains(err.Error(), "secret"):
		t.Errorf("%v; it is %s", err, why)
	}
}

// The latest few keys are secrets; which they are is hidden.
func TestSecretsOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, write := keyFile(t, "key-1")
		f := newFile(t, path)
		for i := 2; i <= 6; i++ {
			write(fmt.Sprintf("key-%d", i))
			time.Sleep(time.Second)
			applied(t, f)
		}
		if got := f.Secrets(); !slices.Equal(got, []string{"key-6", "key-5", "key-4", "key-3"}) {
			t.Errorf("%q", got)
		}
		if shown := fmt.Sprintf("%v %+v %#v", f, f, f); strings.Contains(shown, "key-") {
			t.Errorf("%s", shown)
		}
	})
}

// Two keys that take turns are two secrets, and do not crowd out one before them.
func TestSecretsOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, write := keyFile(t, "key-0")
		f := newFile(t, path)
		for i := range 6 {
			write(fmt.Sprintf("key-%d", 1+i%2))
			time.Sleep(time.Second)
			applied(t, f)
		}
		if got := f.Secrets(); !slices.Equal(got, []string{"key-2", "key-1", "key-0"}) {
			t.Errorf("%q", got)
		}
	})
}

// Many may use a file while it changes: each gets a key that was whole.
func TestFileIsShared(t *testing.T) {
	path, _ := keyFile(t, "key-0")
	f := newFile(t, path)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				r := request(t)
				if err := f.Apply(t.Context(), r, nil); err != nil || !strings.HasPrefix(r.Header.Get("X-Api-Key"), "key-") {
					t.Errorf("%q, %v", r.Header, err)
				}
				f.Refused(r)
				f.Secrets()
			}
		})
	}
	for i := range 50 {
		next := fmt.Sprintf("%s.%d", path, i)
		if err := errors.Join(os.WriteFile(next, fmt.Appendf(nil, "key-%d", i), 0o600), os.Rename(next, path)); err != nil && runtime.GOOS != "windows" {
			t.Error(err)
		}
	}
	all.Wait()
}

// Who else may read or change the file is said.
func TestExposed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are others there")
	}
	path, _ := keyFile(t, "key-1")
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o700: "",
		0o640: "read", 0o604: "read", 0o644: "read", 0o620: "change", 0o666: "change", 0o602: "change",
	} {
		must.Do(t, os.Chmod(path, mode))
		got := auth.Exposed(path)
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) && !strings.HasPrefix(got, "others can "+want+" the key file "+path) {
			t.Errorf("%o: %q", mode, got)
		}
	}
	if got := auth.Exposed(path + "-none"); got != "" {
		t.Errorf("%q", got)
	}
}

// Whatever is in a file, it is a key that a header may have, or an error that does not show it.
func FuzzFile(f *testing.F) {
	for _, text := range []string{"key-1\n", "", "a\nb", "\xff\xfe", "k y"} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "key")
	f.Fuzz(func(t *testing.T, text []byte) {
		must.Do(t, os.WriteFile(path, text, 0o600))
		file, err := auth.NewFile(path, "x-api-key", "")
		if err != nil {
			if file != nil || len(text) >= 24 && strings.Contains(err.Error(), string(text)) {
				t.Errorf("%v", err)
			}
			return
		}
		key := applied(t, file).Header.Get("X-Api-Key")
		if key == "" || strings.ContainsAny(key, "\r\n\x00") || !strings.Contains(string(text), key) {
			t.Errorf("%q of %q", key, text)
		}
	})
}
