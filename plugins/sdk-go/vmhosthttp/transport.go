// Package vmhosthttp sends the requests of net/http through the host: for services outside of the
// cluster that the description names ([github.com/vmhost/vmhost/plugins/sdk-go.Description.HTTP]).
//
//	response, err := vmhosthttp.Client.Get(url)
//
// A client library of a cloud takes Client, or an http.Client with a Transport of its own. Package
// net/http makes a component larger; [github.com/vmhost/vmhost/plugins/sdk-go.Send] does without.
package vmhosthttp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

// Client sends through the host, and hands redirects out as responses.
var Client = &http.Client{
	Transport:     Transport{},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Transport is an http.RoundTripper. It reads whole bodies, and sends one request at a time.
type Transport struct{}

var _ http.RoundTripper = Transport{}

// hostHeaders are set by the host alone. Clients of net/http set some of them.
var hostHeaders = []string{"Host", "Content-Length", "Connection", "Transfer-Encoding"}

// RoundTrip sends one request.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		defer request.Body.Close()
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	headers := request.Header.Clone()
	for _, name := range hostHeaders {
		headers.Del(name)
	}
	sent := vmhost.HTTPRequest{Method: request.Method, URL: request.URL.String(), Body: body}
	if sent.Method == "" {
		sent.Method = http.MethodGet
	}
	for name, values := range headers {
		for _, value := range values {
			sent.Headers = append(sent.Headers, vmhost.HTTPHeader{Name: name, Value: value})
		}
	}
	if deadline, ok := request.Context().Deadline(); ok {
		sent.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	answer, err := vmhost.Send(sent)
	if err != nil {
		return nil, err
	}
	response := &http.Response{
		Status:        strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{},
		Body:          io.NopCloser(bytes.NewReader(answer.Body)),
		ContentLength: int64(len(answer.Body)),
		Request:       request,
	}
	for _, header := range answer.Headers {
		response.Header.Add(header.Name, header.Value)
	}
	return response, nil
}
