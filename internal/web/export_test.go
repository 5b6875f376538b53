package web

import "html/template"

// Render is a text as pages show it.
func Render(s string) template.HTML { return newMarkdown().render(s) }
