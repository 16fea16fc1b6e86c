package vmhost

// Conversion of custom resources between their versions.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Batch holds objects of one kind that are to be of another version.
type Batch struct {
	// Conversion is the name of the conversion in the description that this call is for.
	Conversion string `json:"-"`
	// Desired is the apiVersion that all objects are to have: cloud.waibizi.com/v2.
	Desired string `json:"desiredAPIVersion"`
	// Objects as they are stored or as a client sent them.
	Objects []json.RawMessage `json:"objects"`
}

// BatchOf reads the contract's JSON of a batch; also for tests.
func BatchOf(conversion string, request json.RawMessage) (*Batch, error) {
	batch, err := decode[Batch](request)
	if err != nil {
		return nil, fmt.Errorf("the objects cannot be read: %w", err)
	}
	batch.Conversion = conversion
	return batch, nil
}

// Version returns the version that all objects are to have: v2.
func (b *Batch) Version() string {
	return versionOf(b.Desired)
}

// Each converts each object in place: convert gets the object, whose numbers are [json.Number], and
// the version that it has; the object's apiVersion is set afterwards. Objects that have the desired
// version stay as they are. An error names the object.
func (b *Batch) Each(convert func(object map[string]any, from string) error) ([]any, error) {
	converted := make([]any, len(b.Objects))
	for i, text := range b.Objects {
		object, err := decode[map[string]any](text)
		if err != nil {
			return nil, fmt.Errorf("object %d cannot be read: %w", i, err)
		}
		from, _ := (*object)["apiVersion"].(string)
		if from == b.Desired {
			converted[i] = text
			continue
		}
		if err := convert(*object, versionOf(from)); err != nil {
			return nil, fmt.Errorf("%s cannot be converted from %s to %s: %w", nameIn(*object), from, b.Desired, err)
		}
		(*object)["apiVersion"] = b.Desired
		converted[i] = *object
	}
	return converted, nil
}

func versionOf(apiVersion string) string {
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}

// nameIn returns the object's kind and name for display.
func nameIn(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	kind, _ := object["kind"].(string)
	return kind + " " + ObjectName{namespace, name}.String()
}

// converted is the answer to a batch, as the contract writes it.
type converted struct {
	Objects []any  `json:"convertedObjects,omitzero"`
	Failed  string `json:"failed,omitempty"`
}

func answerOf(objects []any, err error) converted {
	if err != nil {
		return converted{Failed: valid(err.Error())}
	}
	return converted{Objects: append([]any{}, objects...)}
}

var errNoConvert = errors.New("the policy has no Convert")
