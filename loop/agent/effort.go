package agent

import (
	"slices"
	"strings"
)

// Efforts are the reasoning efforts that may follow a model's name. Some models do not know all of
// them.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// SplitEffort splits a configured model, such as "opus@high" or just "@high", into the model's name and the effort;
// each is "" if it is left to the agent. Other words behind an @ are a part of the name, as the dates of some services
// are.
func SplitEffort(written string) (model, effort string) {
	if at := strings.LastIndexByte(written, '@'); at >= 0 && slices.Contains(Efforts, written[at+1:]) {
		return written[:at], written[at+1:]
	}
	return written, ""
}

// JoinEffort returns the inverse of [SplitEffort].
func JoinEffort(model, effort string) string {
	if effort == "" {
		return model
	}
	return model + "@" + effort
}
