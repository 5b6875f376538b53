package web

import (
	"html/template"

	"ralph"
	"ralph/store"
)

// Render is a text as pages show it.
func Render(s string) template.HTML { return newMarkdown().render(s) }

// Looks are the characters of all looks.
func Looks() (list []string) {
	for _, v := range ralph.Verbs {
		list = append(list, verbLook(v).Icon)
	}
	for _, s := range ralph.Statuses {
		list = append(list, statusLook(s).Icon)
	}
	for _, l := range phases {
		list = append(list, l.Icon)
	}
	for _, kind := range store.InboxKinds() {
		list = append(list, waits[kind].Icon)
	}
	return list
}

// Icon is a character as pages draw it.
func Icon(character string) template.HTML { return icon(character) }
