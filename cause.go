package ralph

import (
	"fmt"
	"regexp"
	"slices"

	"ralph/internal/lazy"
)

// A Cause is the missing service, network or file that made a command fail, according to its
// output; "" if unknown.
type Cause string

// The causes of failures that are outside of the code under test.
const (
	NoNetwork Cause = "network" // no host could be looked up or reached
	NoService Cause = "service" // nobody listened at an address
	NoDocker  Cause = "docker"  // Docker's socket could not be reached
)

// signs are messages of programs that lack something, the most particular cause first.
var signs = []struct {
	cause Cause
	said  func() *regexp.Regexp
}{
	{NoDocker, lazy.Regexp(`(?i)cannot connect to the docker daemon|docker\.sock|` +
		`valid docker environment|` +
		`rootless docker not found|working container runtime|` +
		`docker daemon is not running|failed to connect to the docker API|podman\.sock|connect to podman`)},
	{NoNetwork, lazy.Regexp(`(?i)network is unreachable|no route to host|` +
		`(could(n't| not)|cannot|can't|unable to|failed to) resolve (the )?(host|proxy|server|address|domain)|` +
		`failure in name resolution|name or service not known|name does not resolve|nodename nor servname|` +
		`server misbehaving|` +
		`failed to lookup address|no such host|unknown[ _]host|bad address '|nxdomain|dns resolution failed|` +
		`UnknownHostException|getaddrinfo|(?-i:\b(ENETUNREACH|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|ENETDOWN)\b)|` +
		`ERR_INTERNET_DISCONNECTED|` +
		`ERR_NAME_NOT_RESOLVED|failure resolving|network unreachable|able to access the url\?|` +
		`unable to load the service index`)},
	// A test may be called test_connection_refused.
	{NoService, lazy.Regexp(`(?i)connection refused|(?-i:\bConnectionRefused|CONNECTION_REFUSED)|` +
		`connection to (the server )?\S+ (was )?refused|ECONNREFUSED|actively refused|connect call failed|` +
		`could(n't| not) connect to server|failed to connect to '?\[?[\w.:-]+\]?(:| port )\d+|` +
		`all connection attempts failed|cannot assign requested address|dial tcp.*: i/o timeout|` +
		`can't reach database server|network-related or instance-specific|tcp/ip connection to the host|` +
		`communications link failure|NoBrokersAvailable|ServerSelectionTimeout|no suitable servers found|` +
		`run out of available brokers|broker transport failure|BrokerUnreachable|AMQPConnectionError|` +
		`no servers available for connection|TNS:no listener|RedisConnectionException|connect to the redis server|` +
		`unable to connect to (any of the specified mysql|localhost|127\.0\.0\.1|\[?::1)|- no response|` +
		`can't connect to (local )?(mysql|server)|SQLSTATE\[HY000\] \[2002\]|could not connect to ryuk|` +
		`connection to server (at|on) .* failed|\.s\.PGSQL|mysqld?\.sock|redis\.sock|failed to verify that your server|` +
		`permission denied.*\.sock|connect: permission denied|dial unix`)},
}

// CauseOf reads the cause from the output of a failed command. It is read once, where the command ran;
// everything else decides on the [Cause].
func CauseOf(output string) Cause {
	for _, s := range signs {
		if s.said().MatchString(output) {
			return s.cause
		}
	}
	return ""
}

// Said names the cause in a few words; "" for none.
func (c Cause) Said() string {
	return map[Cause]string{NoNetwork: "no network", NoService: "no service answered", NoDocker: "no Docker"}[c]
}

// Key returns the line of ralph.yaml that gives checks access; "" for none.
func (c Cause) Key() string {
	return map[Cause]string{
		NoNetwork: "verify.network: true", NoService: "verify.network: true",
		NoDocker: "sandbox.show: [/var/run/docker.sock, /run/docker.sock]",
	}[c]
}

// Advice tells how to give checks access; "" for no cause.
func (c Cause) Advice() string {
	if c == "" {
		return ""
	}
	reach := "the network, and the services of this machine"
	if c == NoDocker {
		reach = "Docker, which can do all that you can do"
	}
	return c.Said() + " in the sandbox: `" + c.Key() + "` in ralph.yaml lets checks reach " + reach +
		" (docs/howto/services.md)"
}

// A Copied is a folder of the person's that was copied into workspaces, because a set-up command failed.
type Copied struct {
	Folder  string `json:"folder"`  // relative to the project's root
	Command string `json:"command"` // the command that failed
	Cause   Cause  `json:"cause"`
}

// String names the folder and the failed command.
func (c Copied) String() string {
	return fmt.Sprintf("%s is a copy of yours: `%s` failed (%s)", c.Folder, c.Command, c.Cause.Said())
}

// CopiedOf describes the copied folders that checks ran with, each once.
func CopiedOf(checks []Check) (list []string) {
	for _, c := range checks {
		for _, copied := range c.Copied {
			if said := copied.String(); !slices.Contains(list, said) {
				list = append(list, said)
			}
		}
	}
	return list
}
