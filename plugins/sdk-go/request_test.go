package vmhost

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNumbersKeepAllDigits(t *testing.T) {
	request := &Request{Object: json.RawMessage(`{"spec":{"number":9007199254740993,"huge":12345678901234567890123}}`)}
	typed, err := Object[struct {
		Spec struct {
			Number int64
			Huge   json.Number
		}
	}](request)
	if err != nil || typed.Spec.Number != 9007199254740993 || typed.Spec.Huge != "12345678901234567890123" {
		t.Errorf("%+v, %v", typed, err)
	}
	free, err := Object[map[string]map[string]any](request)
	if err != nil || (*free)["spec"]["number"] != json.Number("9007199254740993") {
		t.Errorf("%v, %v", free, err)
	}
}

func TestNullIsNotMissing(t *testing.T) {
	object, err := Decode[struct{ A, B, C json.RawMessage }](json.RawMessage(`{"a":null,"c":1}`))
	if err != nil || string(object.A) != "null" || object.B != nil || string(object.C) != "1" {
		t.Errorf("%s, %v", object, err)
	}
	free, err := Decode[map[string]any](json.RawMessage(`{"a":null}`))
	if value, ok := (*free)["a"]; err != nil || !ok || value != nil {
		t.Errorf("%v, %v", free, err)
	}
}

func TestAnObjectThatIsGoneIsNil(t *testing.T) {
	if object, err := Object[map[string]any](&Request{}); object != nil || err != nil {
		t.Errorf("%v, %v", object, err)
	}
	if previous, err := Previous[map[string]any](&Request{Object: json.RawMessage("{}")}); previous != nil || err != nil {
		t.Errorf("%v, %v", previous, err)
	}
}

func TestTextThatIsNotWantedIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"x"}`: "cannot unmarshal string",
		`{"a":1} 2`: "more than one JSON value",
		`{"a":`:     "unexpected EOF",
	} {
		_, err := Decode[struct{ A int }](json.RawMessage(text))
		if err == nil || !strings.HasPrefix(err.Error(), "the object cannot be read: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v", text, err)
		}
	}
}
