//go:build !wasip1

package vmhost

// Native builds have no host, except for a test's own, set by WithHost.
var host Host = noHost{}
