package vmhost

// Connects log/slog to the host's log. A plugin's default logger, and that of the package log,
// write there.

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// LevelTrace is the host's level below debug: slog.Log(ctx, vmhost.LevelTrace, "...").
const LevelTrace = slog.Level(-8)

// NewLogHandler returns a handler that writes to the host's log: the message, followed by the
// attributes as key=value. The host adds time, level, plugin, controller and object, and drops
// disabled levels.
func NewLogHandler() slog.Handler {
	buffer := new(lockedBuffer)
	options := slog.HandlerOptions{Level: LevelTrace, ReplaceAttr: withoutLevelAndMessage}
	return logHandler{buffer, slog.NewTextHandler(&buffer.text, &options)}
}

type lockedBuffer struct {
	sync.Mutex
	text bytes.Buffer
}

type logHandler struct {
	buffer     *lockedBuffer
	attributes slog.Handler
}

func (h logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	line := record.Message
	attributes := slog.NewRecord(time.Time{}, record.Level, "", 0)
	record.Attrs(func(attribute slog.Attr) bool {
		attributes.AddAttrs(attribute)
		return true
	})
	h.buffer.Lock()
	defer h.buffer.Unlock()
	h.buffer.text.Reset()
	if err := h.attributes.Handle(ctx, attributes); err != nil {
		return err
	}
	if text := strings.TrimSuffix(h.buffer.text.String(), "\n"); text != "" {
		line += " " + text
	}
	host.Log(record.Level, valid(line))
	return nil
}

func (h logHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return logHandler{h.buffer, h.attributes.WithAttrs(attributes)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.buffer, h.attributes.WithGroup(name)}
}

// withoutLevelAndMessage removes what slog itself puts before the attributes.
func withoutLevelAndMessage(groups []string, attribute slog.Attr) slog.Attr {
	_, isLevel := attribute.Value.Any().(slog.Level)
	isMessage := attribute.Key == slog.MessageKey && attribute.Value.Equal(slog.StringValue(""))
	if len(groups) == 0 && (isLevel && attribute.Key == slog.LevelKey || isMessage) {
		return slog.Attr{}
	}
	return attribute
}
