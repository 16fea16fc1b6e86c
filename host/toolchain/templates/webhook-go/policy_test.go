package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

func ask(t *testing.T, object string) (vmhost.Verdict, error) {
	review, err := vmhost.ReviewOf("who", json.RawMessage(`{"operation":"CREATE","object":`+object+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return admit(review)
}

func TestSomebodyHasToBeNamed(t *testing.T) {
	refused := vmhost.Deny("spec.who must name somebody")
	for object, want := range map[string]vmhost.Verdict{
		`{"spec":{"who":"Ada"}}`: vmhost.Allow(),
		`{"spec":{"who":""}}`:    refused,
		`{"spec":{}}`:            refused,
		"null":                   vmhost.Allow(),
	} {
		have, err := ask(t, object)
		if err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: have %+v, %v\nwant %+v", object, have, err, want)
		}
	}
}

func TestAnObjectThatCannotBeReadIsNoVerdict(t *testing.T) {
	if _, err := ask(t, `{"spec":{"who":1}}`); err == nil {
		t.Error("a number was allowed")
	}
}
