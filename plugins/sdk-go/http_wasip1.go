//go:build wasip1

package vmhost

// HTTP requests through the real host. Only policies that call Send import this function. Written
// by hand: a world of its own would make all policies import it.

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unsafe"

	wit "github.com/vmhost/vmhost/plugins/sdk-go/internal/wit/runtime"
)

//go:wasmimport vmhost:http/http@1.0.0 send
func httpSend(method uintptr, methodLen uint32, url uintptr, urlLen uint32, headers uintptr, headersLen uint32, body uintptr, bodyLen uint32, hasTimeout int32, timeout uint32, result uintptr)

// The canonical ABI's result<response, error>, in words of 32 bits: the case, then of a response
// the status, headers and body; of an error its case, and a text or a number.
const resultWords = 6

var httpErrors = [...]HTTPErrorCode{HTTPDenied, HTTPInvalid, HTTPNotSent, HTTPNoAnswer, HTTPTooLarge}

func send(request HTTPRequest) (HTTPResponse, error) {
	pinner := &runtime.Pinner{}
	defer pinner.Unpin()
	method, url := pinned(pinner, request.Method), pinned(pinner, request.URL)
	headers := wit.Allocate(pinner, uintptr(len(request.Headers))*16, 4)
	for i, header := range request.Headers {
		words := (*[4]uint32)(unsafe.Add(headers, i*16))
		*words = [4]uint32{
			uint32(pinned(pinner, header.Name)), uint32(len(header.Name)),
			uint32(pinned(pinner, header.Value)), uint32(len(header.Value)),
		}
	}
	body := unsafe.Pointer(unsafe.SliceData(request.Body))
	if len(request.Body) > 0 {
		pinner.Pin(body)
	}
	hasTimeout, timeout := int32(0), uint32(0)
	if request.Timeout > 0 {
		hasTimeout, timeout = 1, uint32(min(max(request.Timeout/time.Millisecond, 1), 1<<31))
	}
	area := wit.Allocate(pinner, resultWords*4, 4)
	type answer struct {
		response HTTPResponse
		err      error
	}
	got := wit.Crossing(func() answer {
		httpSend(method, uint32(len(request.Method)), url, uint32(len(request.URL)), uintptr(headers), uint32(len(request.Headers)), uintptr(body), uint32(len(request.Body)), hasTimeout, timeout, uintptr(area))
		response, err := result((*[resultWords]uint32)(area))
		return answer{response, err}
	})
	return got.response, got.err
}

func pinned(pinner *runtime.Pinner, text string) uintptr {
	if text == "" {
		return 0
	}
	start := unsafe.Pointer(unsafe.StringData(text))
	pinner.Pin(start)
	return uintptr(start)
}

func result(words *[resultWords]uint32) (HTTPResponse, error) {
	if uint8(words[0]) != 0 {
		code := httpErrors[uint8(words[1])]
		if code == HTTPTooLarge {
			return HTTPResponse{}, HTTPError{code, fmt.Sprintf("larger than %d bytes", words[2])}
		}
		return HTTPResponse{}, HTTPError{code, told(words[2], words[3])}
	}
	headers := make([]HTTPHeader, words[3])
	for i := range headers {
		header := (*[4]uint32)(unsafe.Add(unsafe.Pointer(uintptr(words[2])), i*16))
		headers[i] = HTTPHeader{told(header[0], header[1]), told(header[2], header[3])}
	}
	response := HTTPResponse{Status: int(uint16(words[1])), Headers: headers}
	if words[5] > 0 {
		response.Body = bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(uintptr(words[4]))), words[5]))
	}
	return response, nil
}

// told returns a copy of a text that the host has put here.
func told(start, length uint32) string {
	if length == 0 {
		return ""
	}
	return strings.Clone(unsafe.String((*byte)(unsafe.Pointer(uintptr(start))), length))
}
