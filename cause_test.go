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
		"ModuleNotFoundError: No module named 'django'":                                                        "",
		"FileNotFoundError: [Errno 2] No such file or directory: 'a'":                                          "",
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
		`asyncpg: OSError: Multiple exceptions: [Errno 111] Connect call failed ('::1', 5432, 0, 0)`:           ralph.NoService,
		"curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server":            ralph.NoService,
		"dial tcp [::1]:5432: connect: cannot assign requested address":                                        ralph.NoService,
		"dial tcp 10.0.0.7:5432: i/o timeout":                                                                  ralph.NoService,
		"Can't reach database server at `localhost:5432`":                                                      ralph.NoService,
		"SQLSTATE[HY000] [2002] No such file or directory":                                                     ralph.NoService,
		"A network-related or instance-specific error occurred while establishing a connection":                ralph.NoService,
		"The TCP/IP connection to the host localhost, port 1433 has failed":                                    ralph.NoService,
		"The connection to the server localhost:8080 was refused - did you specify the right host":             ralph.NoService,
		"error: ConnectionRefused (bun)":                                                                       ralph.NoService,
		"MySqlException: Unable to connect to any of the specified MySQL hosts.":                               ralph.NoService,
		"io.lettuce.core.RedisConnectionException: Unable to connect to localhost/<unresolved>:6379":           ralph.NoService,
		"kafka: client has run out of available brokers to talk to":                                            ralph.NoService,
		"localhost:5432 - no response":                                                                         ralph.NoService,
		"Could not connect to Ryuk at localhost:32768":                                                         ralph.NoService,
		"test_connection_refused (tests.Client) ... ok":                                                        "",
		"--- PASS: TestConnectionRefused (0.00s)":                                                              "",
		"✘ [ERROR] Could not resolve \"./missing.js\"":                                                         "",
		"error[E0433]: failed to resolve: use of undeclared crate":                                             "",
		"wget: unable to resolve host address 'example.com'":                                                   ralph.NoNetwork,
		"wget: bad address 'example.com'":                                                                      ralph.NoNetwork,
		"dial tcp: lookup db on 127.0.0.53:53: server misbehaving":                                             ralph.NoNetwork,
		"** (Mint.TransportError) non-existing domain - nxdomain":                                              ralph.NoNetwork,
		"NU1301: Unable to load the service index for source https://api.nuget.org/v3/index.json":              ralph.NoNetwork,
		"Unknown host repo.maven.apache.org":                                                                   ralph.NoNetwork,
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
