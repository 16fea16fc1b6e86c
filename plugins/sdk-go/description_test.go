package vmhost

import (
	"encoding/json"
	"testing"
)

func TestSettingsHaveASchemaAndAPermissionMayBeOptional(t *testing.T) {
	permission := Permission{Kind: Kind{Version: "v1", Kind: "Pod"}, Verbs: []Verb{VerbPatch}, Namespaces: []string{"default"}, Optional: true}
	want := `{"apiVersion":"vmhost/v1","name":"p","permissions":[{"version":"v1","kind":"Pod","verbs":["patch"],"namespaces":["default"],"optional":true}],` +
		`"settingsSchema":{"required":["zone"],"type":"object"}}`
	for _, schema := range []any{
		map[string]any{"type": "object", "required": []string{"zone"}},
		json.RawMessage(`{"required":["zone"],"type":"object"}`),
	} {
		same(t, Description{Name: "p", Permissions: []Permission{permission}, SettingsSchema: schema}, want)
	}
}
