package web

import "html/template"

// icons are the drawings for the characters of the looks, so that no page depends on a font with emoji. They are lines
// in a square of 24; shapes of class "f" are filled.
var icons = map[string]string{
	"?": question, "❓": question,
	"○": circle, "●": `<circle class="f" cx="12" cy="12" r="9"/>`,
	"◐": circle + `<path class="f" d="M12 3a9 9 0 0 0 0 18z"/>`,
	"◑": circle + `<path class="f" d="M12 3a9 9 0 0 1 0 18z"/>`,
	"◒": circle + `<path class="f" d="M3 12a9 9 0 0 0 18 0z"/>`,
	"◓": circle + `<path class="f" d="M3 12a9 9 0 0 1 18 0z"/>`,
	"◔": circle + `<path class="f" d="M12 3a9 9 0 0 1 9 9h-9z"/>`,
	"⊙": circle + `<circle class="f" cx="12" cy="12" r="2.5"/>`,
	"⊘": barred, "🚫": barred,
	"⏸": `<path class="f" d="M6 4h4v16H6zM14 4h4v16h-4z"/>`,
	"◆": `<path class="f" d="M12 2l9 10-9 10-9-10z"/>`,
	"◷": circle + `<path d="M12 6v6l4 3"/>`,
	"✉": `<path d="M3 5h18v14H3zM3 6l9 7 9-7"/>`,
	"⤒": `<path d="M12 21V9M6 14l6-6 6 6M4 3h16"/>`,
	"▶": `<path class="f" d="M7 4l12 8-12 8z"/>`,
	"✓": `<path d="M20 6 9 17l-5-5"/>`,
	"✕": `<path d="M18 6 6 18M6 6l12 12"/>`,
	"–": `<path d="M5 12h14"/>`,
	"☰": `<path d="M9 6h12M9 12h12M9 18h12M4 6h.1M4 12h.1M4 18h.1"/>`,
	"↑": `<path d="M12 20V4M5 11l7-7 7 7"/>`,
	"⇢": `<path d="M3 6h6l6 12h6M3 18h6M17 14l4 4-4 4"/>`,
	"⚠": `<path d="M12 3 2 21h20zM12 10v5M12 18v.1"/>`,
	"✋": `<path d="M8 2h8l6 6v8l-6 6H8l-6-6V8zM12 7v6M12 17v.1"/>`,
	"🚩": `<path d="M5 22V3h14l-4 5 4 5H5"/>`,
	"💡": `<path d="M9 17c0-3-4-4-4-8.5a7 7 0 0 1 14 0C19 13 15 14 15 17zM10 21h4"/>`,
	"💭": `<path d="M21 12a9 8.5 0 0 1-13 7.5L3 21l1.5-5A8.5 8.5 0 1 1 21 12z"/>`,
	"🔑": `<circle cx="8" cy="16" r="5"/><path d="M11.5 12.5 21 3M17 7l3 3"/>`,
	"🔍": `<circle cx="11" cy="11" r="7"/><path d="M21 21l-5-5"/>`,
	"⛓": `<rect x="2" y="8" width="11" height="8" rx="4"/><rect x="11" y="8" width="11" height="8" rx="4"/>`,
	"⚡": `<path d="M13 2 4 14h7l-1 8 9-12h-7z"/>`,
	"✎": `<path d="M4 20l1-5L17 3l4 4L9 19zM14 6l4 4"/>`,
	"👤": `<circle cx="12" cy="7" r="4"/><path d="M4 21v-1a5 5 0 0 1 5-5h6a5 5 0 0 1 5 5v1"/>`,
	"⚙": `<path d="M4 6h8M18 6h2M4 12h2M12 12h8M4 18h8M18 18h2"/>` +
		`<circle cx="15" cy="6" r="2.5"/><circle cx="9" cy="12" r="2.5"/><circle cx="15" cy="18" r="2.5"/>`,
}

// Drawings of several characters.
const (
	circle   = `<circle cx="12" cy="12" r="9"/>`
	question = circle + `<path d="M9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .9-1 1.7M12 16.5v.1"/>`
	barred   = circle + `<path d="M5.6 5.6l12.8 12.8"/>`
)

// icon returns the drawing for a character, or the character itself. Screen readers ignore it, since words are beside
// it.
func icon(character string) template.HTML {
	drawn := `<span aria-hidden="true">` + template.HTMLEscapeString(character) + `</span>`
	if lines, ok := icons[character]; ok {
		drawn = `<svg class="ic" viewBox="0 0 24 24" aria-hidden="true">` + lines + `</svg>`
	}
	return template.HTML(drawn) //nolint:gosec // escaped, or ralph's own
}
