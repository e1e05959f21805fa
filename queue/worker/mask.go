package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// masked takes the place of a credential in everything that a run says.
	masked = "***"
	// maskLeast is the shortest text that is masked, in bytes: below it every other word would be, and no credential is.
	maskLeast = 4
	// maskWordMost is the length from which a credential is masked within longer words too, in bytes.
	maskWordMost = 12
	// maskLineLeast is the shortest line of a longer credential, such as a PEM text, that is masked by itself.
	maskLineLeast = 20
)

// mask is the last net under a run's credentials: whatever a broker or a library puts into an error, they do not show in a
// log, in the ledger or in connector.log. The zero value hides nothing.
type mask struct{ hidden atomic.Pointer[[]string] }

// hide has the values hidden from now on, and their long lines.
func (m *mask) hide(values []string) {
	var all []string
	for _, v := range values {
		all = append(all, v, strings.TrimSpace(v))
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= maskLineLeast {
				all = append(all, line)
			}
		}
	}
	all = slices.DeleteFunc(all, func(text string) bool { return len(text) < maskLeast })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one that holds another goes first
	all = slices.Compact(all)
	m.hidden.Store(&all)
}

func (m *mask) text(s string) string {
	if hidden := m.hidden.Load(); hidden != nil {
		for _, value := range *hidden {
			s = maskIn(s, value)
		}
	}
	return s
}

// maskIn masks value wherever it stands in s. A short one that is part of a longer word is none: a user called acme must not
// take the connector acme-orders out of a hint.
func maskIn(s, value string) string {
	var out strings.Builder
	for {
		at := strings.Index(s, value)
		if at < 0 {
			break
		}
		end := at + len(value)
		inWord := len(value) < maskWordMost && (at > 0 && wordByte(s[at-1]) || end < len(s) && wordByte(s[end]))
		out.WriteString(s[:at])
		if inWord {
			out.WriteString(value)
		} else {
			out.WriteString(masked)
		}
		s = s[end:]
	}
	out.WriteString(s)
	return out.String()
}

// wordByte tells what names of connectors, topics and tables are made of.
func wordByte(b byte) bool {
	return b == '_' || b == '-' || b == '.' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// maskedLog is a log handler that writes what mask lets through.
type maskedLog struct {
	slog.Handler
	mask *mask
}

// Handle writes a line whose message and values are masked.
func (h maskedLog) Handle(ctx context.Context, line slog.Record) error {
	out := slog.NewRecord(line.Time, line.Level, h.mask.text(line.Message), line.PC)
	line.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs is a handler with further values, masked as they are now.
func (h maskedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return maskedLog{h.Handler.WithAttrs(out), h.mask}
}

// WithGroup is a handler whose values stand in a group.
func (h maskedLog) WithGroup(name string) slog.Handler {
	return maskedLog{h.Handler.WithGroup(name), h.mask}
}

// attr masks what can hold a text: strings, errors and whatever prints itself. Numbers and times cannot.
func (h maskedLog) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.mask.text(v.String()))
	case slog.KindGroup:
		group := make([]any, 0, len(v.Group()))
		for _, inner := range v.Group() {
			group = append(group, h.attr(inner))
		}
		return slog.Group(a.Key, group...)
	case slog.KindAny:
		return slog.String(a.Key, h.mask.text(fmt.Sprint(v.Any())))
	default:
		return a
	}
}
