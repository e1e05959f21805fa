package demo

import (
	"slices"
	"testing"

	"highwater/sidecar/demo/manifests"
)

func TestTheEnvironmentLiesOverTheProcesssOwn(t *testing.T) {
	e := newEnvironment(func(name string) (string, bool) { return "below", name == "BOTH" || name == "BELOW" })
	e.put("BOTH", "above")
	e.put("GONE", "above")
	e.put("GONE", "")
	for name, want := range map[string]string{"BOTH": "above", "BELOW": "below", "GONE": "", "NEITHER": ""} {
		got, ok := e.lookup(name)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s gives %q, %t, want %q", name, got, ok, want)
		}
	}
	e.put("BOTH", "")
	if got, _ := e.lookup("BOTH"); got != "below" {
		t.Errorf("taken away, BOTH gives %q, want what lies below", got)
	}
	if _, ok := newEnvironment(nil).lookup("ANY"); ok {
		t.Error("without a process's environment there is nothing")
	}
}

func TestEachFileIsNamedOnce(t *testing.T) {
	found := []manifests.Difference{{File: "a"}, {File: "a"}, {File: "b"}}
	if got := files(found); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("files %v, want a and b", got)
	}
}
