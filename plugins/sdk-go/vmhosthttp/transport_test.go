package vmhosthttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
	"github.com/vmhost/vmhost/plugins/sdk-go/vmhosthttp"
	"github.com/vmhost/vmhost/plugins/sdk-go/vmhosttest"
)

const url = "https://api.example.com/machines"

func TestRequestsGoThroughTheHost(t *testing.T) {
	host := vmhosttest.Host{Responses: []vmhosttest.Response{
		{Method: "POST", URL: url, Status: 201, Body: `{"id":7}`},
		{URL: url, Status: 302, Headers: map[string]string{"Location": "http://169.254.169.254/"}},
	}}
	host.Run(func() {
		made, err := vmhosthttp.Client.Post(url, "application/json", strings.NewReader(`{"size":"small"}`))
		if err != nil || made.StatusCode != http.StatusCreated {
			t.Fatalf("%v, %v", made, err)
		}
		if body, _ := io.ReadAll(made.Body); string(body) != `{"id":7}` {
			t.Errorf("%s", body)
		}
		moved, err := vmhosthttp.Client.Get(url)
		if err != nil || moved.StatusCode != http.StatusFound {
			t.Fatalf("a redirect is a response: %v, %v", moved, err)
		}
		_, err = vmhosthttp.Client.Get(url + "/x")
		var refused vmhost.HTTPError
		if !errors.As(err, &refused) || refused.Code != vmhost.HTTPNotSent {
			t.Errorf("%v", err)
		}
	})
	sent := host.Requests[0]
	if string(sent.Body) != `{"size":"small"}` || len(sent.Headers) != 1 || sent.Headers[0].Value != "application/json" {
		t.Errorf("%+v", sent)
	}
}
