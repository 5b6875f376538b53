package main

// scope is what is broken, and who is to notice. Tests that take long come last:
// few mutants live to see them.
var scope = []target{
	{files: "signals/*.go", judges: []judge{
		{pkg: "signals", skip: "TestEveryDecision"},
		{pkg: "signals", run: "TestEveryDecision"},
	}},
}
