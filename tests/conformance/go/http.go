package main

// The case that sends HTTP requests.

import (
	"errors"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

func sendRequests() (any, error) {
	made, err := vmhost.Send(vmhost.HTTPRequest{
		Method:  "POST",
		URL:     "http://api.example.com:8080/v1/machines",
		Headers: []vmhost.HTTPHeader{{Name: "content-type", Value: "application/json"}, {Name: "x-case", Value: "http"}},
		Body:    []byte(`{"n":"☃"}`),
	})
	if err != nil {
		return nil, err
	}
	var media string
	for _, header := range made.Headers {
		if header.Name == "content-type" {
			media = header.Value
		}
	}
	var refused vmhost.HTTPError
	if _, err := vmhost.Send(vmhost.HTTPRequest{Method: "GET", URL: "https://denied.example.com/"}); !errors.As(err, &refused) {
		return nil, err
	}
	return map[string]any{"status": made.Status, "type": media, "body": string(made.Body), "error": refused.Code}, nil
}
