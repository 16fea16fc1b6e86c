//go:build !wasip1

package vmhost

// Natively there is no host, but for what a test puts here by WithHost.
var host Host = noHost{}
