package hook

import (
	"maps"
	"slices"
	"testing"
)

// The catalog names every event once.
func TestCatalogIsComplete(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range Catalog() {
		if e.Summary == "" {
			t.Errorf("%s has no summary", e.Name)
		}
		got = append(got, e.Name)
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(events)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
