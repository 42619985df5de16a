package dial

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// socks asks a SOCKS5 proxy (RFC 1928, 1929) for a connection to host, whose
// name the proxy looks up. It closes conn on errors; the caller bounds it.
func socks(conn net.Conn, proxy *url.URL, host, port string) (net.Conn, error) {
	if err := socksConnect(conn, proxy, host, port); err != nil {
		conn.Close()
		return nil, fmt.Errorf("SOCKS proxy %s: %w", proxy.Host, err)
	}
	return conn, nil
}

func socksConnect(conn net.Conn, proxy *url.URL, host, port string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%q is no port", port)
	}
	user := proxy.User.Username()
	password, _ := proxy.User.Password()
	if len(host) > 255 || len(user) > 255 || len(password) > 255 {
		return errors.New("a name or the password is too long for the protocol")
	}
	methods := []byte{5, 1, 0}
	if proxy.User != nil {
		methods = []byte{5, 2, 0, 2}
	}
	var b [4]byte
	answer := func(request []byte, n int) error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, b[:n])
		return err
	}
	if err := answer(methods, 2); err != nil {
		return err
	}
	switch {
	case b[0] != 5:
		return errors.New("it does not speak SOCKS5")
	case b[1] == 2 && proxy.User != nil:
		login := append([]byte{1, byte(len(user))}, user...)
		login = append(append(login, byte(len(password))), password...)
		if err := answer(login, 2); err != nil {
			return err
		}
		if b[1] != 0 {
			return errors.New("it does not take the user and the password")
		}
	case b[1] != 0:
		return errors.New("it wants a user and a password, or something else that is not known here")
	}
	request := []byte{5, 1, 0}
	if a, err := netip.ParseAddr(host); err == nil {
		kind := byte(1)
		if a = a.Unmap(); a.Is6() {
			kind = 4
		}
		request = append(append(request, kind), a.AsSlice()...)
	} else {
		request = append(append(request, 3, byte(len(host))), host...)
	}
	if err := answer(append(request, byte(n>>8), byte(n)), 4); err != nil {
		return err
	}
	switch {
	case b[0] != 5:
		return errors.New("its answer cannot be read")
	case b[1] != 0:
		return errors.New(socksError(b[1]))
	}
	return skipAddress(conn, b[3])
}

// skipAddress reads the address that the proxy connects from.
func skipAddress(r io.Reader, kind byte) error {
	n := 0
	switch kind {
	case 1:
		n = 4
	case 4:
		n = 16
	case 3:
		var l [1]byte
		if _, err := io.ReadFull(r, l[:]); err != nil {
			return err
		}
		n = int(l[0])
	default:
		return errors.New("its answer cannot be read")
	}
	_, err := io.CopyN(io.Discard, r, int64(n+2))
	return err
}

func socksError(code byte) string {
	switch code {
	case 2:
		return "its rules forbid the connection"
	case 3:
		return "the network is unreachable from there"
	case 4:
		return "the host is unreachable from there"
	case 5:
		return "the host refused the connection"
	case 6:
		return "the host did not answer"
	}
	return "it cannot connect (" + strconv.Itoa(int(code)) + ")"
}
