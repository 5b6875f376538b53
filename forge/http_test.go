package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

// TestAway: a request without a response is told by its cause, without the network's layers and its address.
func TestAway(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		cause error
		want  string
	}{
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused"},
		{dial(&net.DNSError{Err: "no such host", Name: "git.example.org", IsNotFound: true}), "there is no host git.example.org"},
		{dial(context.DeadlineExceeded), "it does not answer in time"},
		{io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		err := fmt.Errorf("issue #3: %w", &url.Error{Op: "Get", URL: "https://git.example.org/x", Err: away(c.cause)})
		plain := Unaddressed(err)
		if want := "issue #3: the forge cannot be reached: " + c.want; plain.Error() != want {
			t.Errorf("%v: %q, want %q", c.cause, plain, want)
		}
		if KindOf(plain) != Away {
			t.Errorf("%v is %s", c.cause, KindOf(plain))
		}
	}
	if err := errors.New("x"); !errors.Is(Unaddressed(err), err) || Unaddressed(nil) != nil {
		t.Error("another error has changed")
	}
}
