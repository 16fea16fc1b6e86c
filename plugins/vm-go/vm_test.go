package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

var key = virtualMachine.Key("default", "public-wx")

func turn(t *testing.T, object string) vmhost.Outcome {
	t.Helper()
	request := &vmhost.Request{Controller: "virtualmachines", Key: key}
	if object != "" {
		request.Object = json.RawMessage(object)
	}
	outcome, err := reconcile(request)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func expect(t *testing.T, object string, want vmhost.Outcome) {
	t.Helper()
	if have := turn(t, object); !reflect.DeepEqual(have, want) {
		t.Errorf("%s:\n have %+v\n want %+v", object, have, want)
	}
}

func TestAVMThatIsCreatingBecomesComplete(t *testing.T) {
	want := vmhost.AwaitChange(
		vmhost.JSONPatch{Key: key, Operations: []vmhost.Operation{
			vmhost.Test("/spec/status", "creating"),
			vmhost.Replace("/spec/status", "complete"),
		}},
		vmhost.Event{Type: vmhost.Normal, Reason: "Completed", Note: "The virtual machine is complete"},
	)
	expect(t, `{"spec":{"status":"creating"}}`, want)
	expect(t, `{"spec":{"status":"creating","memory":4096,"disk":500}}`, want)
}

func TestAVMThatCannotBeFailsWithTheReason(t *testing.T) {
	expect(t, `{"spec":{"status":"creating","memory":4096,"disk":-5}}`, vmhost.AwaitChange(
		vmhost.JSONPatch{Key: key, Operations: []vmhost.Operation{
			vmhost.Test("/spec/status", "creating"),
			vmhost.Test("/spec/disk", int64(-5)),
			vmhost.Replace("/spec/status", "fail"),
		}},
		vmhost.Event{Type: vmhost.Warning, Reason: "Impossible", Note: "spec.disk is -5, and must be more than 0"},
	))
	event := turn(t, `{"spec":{"status":"creating","memory":0}}`).Effects[1].(vmhost.Event)
	if !strings.HasPrefix(event.Note, "spec.memory is 0") {
		t.Errorf("the note is %q", event.Note)
	}
}

func TestEveryOtherVMIsLeftAlone(t *testing.T) {
	for _, object := range []string{"", `{"spec":{"status":"complete"}}`, `{"spec":{"status":"fail","memory":0}}`, `{"spec":{}}`, `{}`} {
		expect(t, object, vmhost.AwaitChange())
	}
}

func TestAVMThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := reconcile(&vmhost.Request{Key: key, Object: json.RawMessage(`{"spec":{"status":1}}`)}); err == nil {
		t.Error("a status of 1 was taken")
	}
}
