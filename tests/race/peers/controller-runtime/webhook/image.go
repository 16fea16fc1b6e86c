package main

import (
	"strconv"
	"strings"
)

// The registry of names without one, where it answers too, and the folder of its own images.
const (
	defaultRegistry = "docker.io"
	defaultAlias    = "index.docker.io"
	library         = "library"
)

// image is the name of an image, without tag and digest.
type image struct {
	registry string
	path     string
}

// allowed holds registries, each perhaps with a folder.
type allowed []string

// parseAllowed reads a list that is separated by commas or white space.
func parseAllowed(text string) allowed {
	entries := strings.FieldsFunc(text, func(letter rune) bool {
		return letter == ',' || letter == ' ' || letter == '\n' || letter == '\t'
	})
	for i, entry := range entries {
		entries[i] = strings.TrimRight(entry, "/")
	}
	return entries
}

// contains returns whether an image is of one of the registries, and in the folder if one is given.
func (a allowed) contains(of image) bool {
	for _, entry := range a {
		registry, folder, hasFolder := strings.Cut(entry, "/")
		if registry != of.registry {
			continue
		}
		if !hasFolder {
			return true
		}
		rest, found := strings.CutPrefix(of.path, folder)
		if found && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// parseImage reads a name as container runtimes read it, by the same steps as
// examples/image-policy/src/image.rs.
func parseImage(text string) (image, bool) {
	if name, digest, found := strings.Cut(text, "@"); found {
		if !isDigest(digest) {
			return image{}, false
		}
		text = name
	}
	// A colon before a slash belongs to a port.
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.Contains(text[at+1:], "/") {
		if !isTag(text[at+1:]) {
			return image{}, false
		}
		text = text[:at]
	}
	registry, path := defaultRegistry, text
	first, rest, hasSlash := strings.Cut(text, "/")
	switch {
	case hasSlash && isHost(first):
		registry, path = first, rest
	case !hasSlash && len(text) == 64 && isHex(text):
		// A runtime would take 64 digits for an image's own id.
		return image{}, false
	}
	if registry == defaultAlias {
		registry = defaultRegistry
	}
	if registry == defaultRegistry && !strings.Contains(path, "/") {
		path = library + "/" + path
	}
	if !isRegistry(registry) {
		return image{}, false
	}
	for component := range strings.SplitSeq(path, "/") {
		if !isComponent(component) {
			return image{}, false
		}
	}
	return image{registry, path}, true
}

// isHost returns whether a runtime takes what comes before the first slash for a registry.
func isHost(first string) bool {
	return strings.ContainsAny(first, ".:ABCDEFGHIJKLMNOPQRSTUVWXYZ") || first == "localhost"
}

func isRegistry(text string) bool {
	host, port, hasPort := strings.Cut(text, ":")
	if hasPort {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return false
		}
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

func isLabel(text string) bool {
	return isFramed(text) && all(text, func(b byte) bool { return isSmall(b) || b == '-' })
}

// isComponent accepts runs of letters and digits, between them one dot, one or two underscores, or
// any number of dashes.
func isComponent(text string) bool {
	if !isFramed(text) {
		return false
	}
	separators := strings.FieldsFunc(text, func(letter rune) bool {
		return letter < 0x80 && isSmall(byte(letter))
	})
	for _, separator := range separators {
		switch separator {
		case ".", "_", "__":
		default:
			if strings.Trim(separator, "-") != "" {
				return false
			}
		}
	}
	return true
}

func isTag(text string) bool {
	isInner := func(b byte) bool { return isWord(b) || b == '.' || b == '-' }
	return text != "" && len(text) <= 128 && isWord(text[0]) && all(text, isInner)
}

func isDigest(text string) bool {
	algorithm, digits, found := strings.Cut(text, ":")
	isInner := func(b byte) bool {
		return isWord(b) || b == '+' || b == '.' || b == '-'
	}
	isDigit := func(b byte) bool { return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' }
	return found && algorithm != "" && all(algorithm, isInner) &&
		len(digits) >= 32 && all(digits, isDigit)
}

// isFramed returns whether a text begins and ends with a small letter or a digit.
func isFramed(text string) bool {
	return text != "" && isSmall(text[0]) && isSmall(text[len(text)-1])
}

func isSmall(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9'
}

func isWord(b byte) bool {
	return isSmall(b) || b >= 'A' && b <= 'Z' || b == '_'
}

func isHex(text string) bool {
	return all(text, func(b byte) bool {
		return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
	})
}

func all(text string, is func(byte) bool) bool {
	for i := range len(text) {
		if !is(text[i]) {
			return false
		}
	}
	return true
}
