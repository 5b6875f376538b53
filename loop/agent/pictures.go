package agent

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"ralph/internal/lazy"
)

// Bounds of the pictures of a message.
const (
	maxPictures = 8
	maxPicture  = 4 << 20 // bytes of a file; services refuse larger ones
)

// A Picture is a picture that a message names, for an agent whose protocol accepts pictures.
type Picture struct {
	Type string // "image/png"
	Data string // data of the file, as base64
}

// URL returns the picture as an address.
func (p Picture) URL() string { return "data:" + p.Type + ";base64," + p.Data }

var (
	pictureLink  = lazy.Regexp(`!\[[^\]\n]*\]\(<?([^)>\n]+?)>?\)`)
	pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
)

// Pictures returns the pictures that a text names in Markdown, as ![…](docs/wrong.png), each once. They are files of
// the first folder that has them. Missing files, large ones and other kinds are left out: the agent still reads the
// name.
func Pictures(text string, folders ...string) (list []Picture) {
	var names []string
	for _, m := range pictureLink().FindAllStringSubmatch(text, -1) {
		name := filepath.FromSlash(m[1])
		if len(list) == maxPictures || !filepath.IsLocal(name) || slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		for _, folder := range folders {
			if p, ok := picture(folder, name); ok {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

// picture reads a file of a folder. It follows no link out of the folder.
func picture(folder, name string) (p Picture, ok bool) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return p, false
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPicture {
		return p, false
	}
	f, err := root.Open(name)
	if err != nil {
		return p, false
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxPicture+1))
	p.Type = http.DetectContentType(content)
	if err != nil || len(content) > maxPicture || !slices.Contains(pictureTypes, p.Type) {
		return p, false
	}
	p.Data = base64.StdEncoding.EncodeToString(content)
	return p, true
}
