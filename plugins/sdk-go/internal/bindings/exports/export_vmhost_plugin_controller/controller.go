// Package export_vmhost_plugin_controller is what the generated exports call. The SDK puts its functions here; the other way round would be an import cycle.
package export_vmhost_plugin_controller

import (
	"github.com/vmhost/vmhost/plugins/sdk-go/internal/bindings/imports/vmhost_plugin_types"
	witTypes "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/types"
)

// The three functions of the interface `controller`.
var (
	Describe   func() witTypes.Result[string, string]
	Reconcile  func(vmhost_plugin_types.Request) vmhost_plugin_types.Outcome
	MapChanges func(vmhost_plugin_types.MapRequest) witTypes.Result[[]vmhost_plugin_types.ObjectName, string]
)
