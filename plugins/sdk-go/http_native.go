//go:build !wasip1

package vmhost

// HTTPHost is a [Host] of a test that answers HTTP requests.
type HTTPHost interface {
	Send(HTTPRequest) (HTTPResponse, error)
}

func send(request HTTPRequest) (HTTPResponse, error) {
	if host, ok := host.(HTTPHost); ok {
		return host.Send(request)
	}
	return HTTPResponse{}, HTTPError{HTTPNotSent, "there is no host in a native test; call the policy within a run of vmhosttest.Host"}
}
