package main

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// The host's engine runs the cases; this file tests only what needs no engine.
func TestTheDescriptionIsTheOneOfTheKit(t *testing.T) {
	file, err := os.ReadFile("../description.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(describe())
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	if err := json.Unmarshal(text, &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("the description is %s", text)
	}
}
