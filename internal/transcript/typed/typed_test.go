package typed

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestLoadAppend(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a", "history.jsonl")
	if got, err := Load(file, "/p"); got != nil || err != nil {
		t.Errorf("no file: got %q, %v", got, err)
	}
	now := time.UnixMilli(1234)
	for _, text := range []string{"one", "two\nlines", "one", "three"} {
		if err := Append(file, "/p", "s", text, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := Append(file, "/q", "s", "elsewhere", now); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("no json\n{\"display\":\"torn")
	f.Close()
	if err := Append(file, "/p", "", "after", now); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file, "/p")
	if want := []string{"two\nlines", "one", "three", "after"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	data, _ := os.ReadFile(file)
	if want := `{"display":"one","pastedContents":{},"timestamp":1234,"project":"/p","sessionId":"s"}` + "\n"; string(data[:len(want)]) != want {
		t.Errorf("got %s, want %s", data[:len(want)], want)
	}
	if fi, _ := os.Stat(file); fi.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v", fi.Mode())
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"display":"a","project":"/p"}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "h")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file, "/p"); err != nil {
			t.Fatal(err)
		}
	})
}
