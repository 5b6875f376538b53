package ralph_test

import (
	"testing"

	"ralph"
)

// TestCauses reads messages of programs that cannot connect.
func TestCauses(t *testing.T) {
	for output, want := range map[string]ralph.Cause{
		"":                                   "",
		"AssertionError: 1 != 2":             "",
		"the network of streets is complete": "",
		"dial tcp 127.0.0.1:5432: connect: connection refused":                                                 ralph.NoService,
		"Error: connect ECONNREFUSED 127.0.0.1:6379":                                                           ralph.NoService,
		"ConnectionRefusedError: [Errno 111] Connection refused":                                               ralph.NoService,
		`psycopg2.OperationalError: connection to server at "localhost" (127.0.0.1), port 5432 failed`:         ralph.NoService,
		"ERROR 2002 (HY000): Can't connect to local MySQL server through socket '/run/mysqld/mysqld.sock'":     ralph.NoService,
		`connection to server on socket "/var/run/postgresql/.s.PGSQL.5432" failed: No such file`:              ralph.NoService,
		"dial unix /run/redis/redis.sock: connect: permission denied":                                          ralph.NoService,
		"java.net.ConnectException: Connection refused":                                                        ralph.NoService,
		"org.postgresql.util.PSQLException: Connection to localhost:5432 refused. Check that the hostname":     ralph.NoService,
		"Npgsql.NpgsqlException: Failed to connect to 127.0.0.1:5432":                                          ralph.NoService,
		"page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:3000/":                                     ralph.NoService,
		"httpx.ConnectError: All connection attempts failed":                                                   ralph.NoService,
		"CommunicationsException: Communications link failure":                                                 ralph.NoService,
		"kafka.errors.NoBrokersAvailable: NoBrokersAvailable":                                                  ralph.NoService,
		"MongoServerSelectionTimeoutError: Server selection timed out":                                         ralph.NoService,
		"failed to connect to the widget":                                                                      "",
		"the user refused the connection":                                                                      "",
		"page.goto: net::ERR_NAME_NOT_RESOLVED at https://example.com/":                                        ralph.NoNetwork,
		"Temporary failure resolving 'deb.debian.org'":                                                         ralph.NoNetwork,
		"Error: unable to connect to Podman socket: dial unix /run/podman/podman.sock":                         ralph.NoDocker,
		"dial tcp: lookup proxy.golang.org: no such host":                                                      ralph.NoNetwork,
		"dial tcp 10.0.0.1:443: connect: network is unreachable":                                               ralph.NoNetwork,
		"curl: (6) Could not resolve host: example.com":                                                        ralph.NoNetwork,
		"npm ERR! code EAI_AGAIN":                                                                              ralph.NoNetwork,
		"npm error getaddrinfo ENOTFOUND registry.npmjs.org":                                                   ralph.NoNetwork,
		"NewConnectionError: [Errno -3] Temporary failure in name resolution":                                  ralph.NoNetwork,
		"error: failed to download: failed to lookup address information: Name or service not known":           ralph.NoNetwork,
		"java.net.UnknownHostException: repo.maven.apache.org":                                                 ralph.NoNetwork,
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":    ralph.NoDocker,
		"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock": ralph.NoDocker,
		"Could not find a valid Docker environment. Please see logs and check configuration":                   ralph.NoDocker,
		"Error: Could not find a working container runtime strategy":                                           ralph.NoDocker,
		"Error: connect ENOENT /var/run/docker.sock":                                                           ralph.NoDocker,
		"rootless Docker not found":                                                                            ralph.NoDocker,
	} {
		if got := ralph.CauseOf(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
	for _, c := range []ralph.Cause{ralph.NoNetwork, ralph.NoService, ralph.NoDocker} {
		if c.Said() == "" || c.Key() == "" || c.Advice() == "" {
			t.Errorf("%q has no words", c)
		}
	}
}
