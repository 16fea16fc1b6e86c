package vmhost

// HTTP requests to services outside of the cluster (wit/http-v1). Package vmhosthttp has an
// http.RoundTripper on top of them.

import "time"

// HTTPHeader is one header.
type HTTPHeader struct{ Name, Value string }

// HTTPRequest is what is sent.
type HTTPRequest struct {
	Method, URL string
	Headers     []HTTPHeader
	Body        []byte
	// Timeout is how long the answer may take. 0: what is left of the call's time.
	Timeout time.Duration
}

// HTTPResponse is what came back, whatever its status.
type HTTPResponse struct {
	Status  int
	Headers []HTTPHeader
	Body    []byte
}

// HTTPErrorCode says why there is no response.
type HTTPErrorCode string

// The codes. After HTTPNoAnswer the request may have been carried out.
const (
	HTTPDenied   HTTPErrorCode = "denied"
	HTTPInvalid  HTTPErrorCode = "invalid"
	HTTPNotSent  HTTPErrorCode = "not-sent"
	HTTPNoAnswer HTTPErrorCode = "no-answer"
	HTTPTooLarge HTTPErrorCode = "too-large"
)

// HTTPError says that there is no response.
type HTTPError struct {
	Code   HTTPErrorCode
	Detail string
}

func (e HTTPError) Error() string {
	return "the request has no response (" + string(e.Code) + "): " + e.Detail
}

// Send sends a request and waits for the whole response. The description must name the service.
func Send(request HTTPRequest) (HTTPResponse, error) {
	request.Method, request.URL = valid(request.Method), valid(request.URL)
	for i, header := range request.Headers {
		request.Headers[i] = HTTPHeader{valid(header.Name), valid(header.Value)}
	}
	return send(request)
}
