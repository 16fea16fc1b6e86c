package vmhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	wire "github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

// lines records what is logged.
type lines struct {
	noHost
	all []string
}

func (l *lines) Log(level slog.Level, line string) { l.all = append(l.all, level.String()+": "+line) }

// call makes one turn as the host does, and returns what it logged.
func call(reconcile func(*Request) (Outcome, error), request wire.Request) (wire.Outcome, []string) {
	var log lines
	var outcome wire.Outcome
	WithHost(&log, func() { outcome = Policy{Reconcile: reconcile}.reconcile(request) })
	return outcome, log.all
}

func TestTheRequestOfTheContractIsRead(t *testing.T) {
	request := wire.Request{
		Controller: "c", Key: wireKey, Object: wit.Some("{}"), Previous: none, Deleting: true, Attempt: 3,
		Last: wit.Some(wire.Refusal{Effect: 1, Code: 409, Reason: "Conflict", Message: "m"}),
	}
	var have *Request
	call(func(r *Request) (Outcome, error) { have = r; return Outcome{}, nil }, request)
	want := &Request{Controller: "c", Key: a, Object: json.RawMessage("{}"), Deleting: true, Attempt: 3, Last: &Refusal{1, 409, "Conflict", "m"}}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("%+v", have)
	}
}

func TestErrorsAreFailuresWithTheirText(t *testing.T) {
	broken := errors.New("broken \xff")
	for _, test := range []struct {
		err  error
		want wire.Next
	}{
		{broken, wire.MakeNextRetry("broken \uFFFD")},
		{TerminalError(broken), wire.MakeNextFail("broken \uFFFD")},
		{fmt.Errorf("so %w", TerminalError(broken)), wire.MakeNextFail("so broken \uFFFD")},
	} {
		outcome, _ := call(func(*Request) (Outcome, error) { return AwaitChange(Delete{Key: a}), test.err }, wire.Request{})
		if !reflect.DeepEqual(outcome.Next, test.want) || len(outcome.Effects) != 1 {
			t.Errorf("%v is %v", test.err, outcome)
		}
		if !errors.Is(test.err, broken) {
			t.Errorf("%v hides its cause", test.err)
		}
	}
	outcome, _ := call(func(*Request) (Outcome, error) { return AwaitChange(Create{}), nil }, wire.Request{})
	if !reflect.DeepEqual(outcome, wire.Outcome{Next: wire.MakeNextRetry("effect 0: the object to create is nil")}) {
		t.Errorf("%v", outcome)
	}
}

func TestAPanicIsAFailureAndItsStackIsLogged(t *testing.T) {
	outcome, log := call(func(r *Request) (Outcome, error) { return Outcome{Effects: []Effect{nil}[r.Attempt:]}, nil }, wire.Request{Attempt: 2})
	text := "panic: runtime error: slice bounds out of range [2:1]"
	if !reflect.DeepEqual(outcome, wire.Outcome{Next: wire.MakeNextRetry(text)}) {
		t.Errorf("%v", outcome)
	}
	if len(log) != 1 || !strings.HasPrefix(log[0], "ERROR: "+text) || !strings.Contains(log[0], "call_test.go") {
		t.Errorf("%q", log)
	}
}

func TestMappedChanges(t *testing.T) {
	mapper := func(r *MapRequest) ([]ObjectName, error) {
		if r.Controller != "c" || r.Changes[0].Old != nil || string(r.Changes[0].New) != "{}" {
			return nil, fmt.Errorf("cannot map %s", r.Controller)
		}
		return []ObjectName{{"default", "a"}, {"", "b"}}, nil
	}
	request := wire.MapRequest{Controller: "c", Changes: []wire.Change{{Old: none, New: wit.Some("{}")}}}
	want := wit.Ok[[]wire.ObjectName, string]([]wire.ObjectName{{Namespace: wit.Some("default"), Name: "a"}, {Namespace: none, Name: "b"}})
	if have := (Policy{MapChanges: mapper}).mapChanges(request); !reflect.DeepEqual(have, want) {
		t.Errorf("%v", have)
	}
	if have := (Policy{MapChanges: mapper}).mapChanges(wire.MapRequest{Controller: "d"}); !have.IsErr() || have.Err() != "cannot map d" {
		t.Errorf("%v", have)
	}
	if have := (Policy{}).mapChanges(request); have.IsErr() || len(have.Ok()) != 0 {
		t.Errorf("%v", have)
	}
}

func TestADescriptionThatCannotBeWrittenIsAnError(t *testing.T) {
	reconcile := func(*Request) (Outcome, error) { return Outcome{}, nil }
	for _, test := range []struct {
		policy Policy
		want   string
	}{
		{Policy{}, "the plugin exports no policy"},
		{Policy{Reconcile: reconcile, Describe: func() Description { panic("no") }}, "panic: no"},
		{
			Policy{Reconcile: reconcile, Describe: func() Description { return Description{Setup: Setup{[]any{func() {}}}} }},
			"json",
		},
	} {
		WithHost(&lines{}, func() {
			have := test.policy.describe()
			if !have.IsErr() || !strings.HasPrefix(have.Err(), test.want) {
				t.Errorf("%v", have)
			}
		})
	}
}
