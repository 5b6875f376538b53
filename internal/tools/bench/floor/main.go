// Command floor is the smallest program that serves the Model Context Protocol with
// the SDK that ralph uses: one tool, which does nothing. See the package bench.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "floor"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "nothing"}, nothing)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func nothing(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
}
