package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// errNotAllowed is why a connection is not made.
var errNotAllowed = errors.New("the address is not public, and in no network in which webhooks may be")

// special are the networks among those of public addresses that are for something else.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"168.63.129.16/32", // metadata of Azure
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var (
	global6   = netip.MustParsePrefix("2000::/3")
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // the IPv4 address is in its last bytes
	nat64Size = 12
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func isIn(ip netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}

// isPublic reports whether an address is one of the internet: not private, not of this machine or its link, not of a metadata service.
func isPublic(ip netip.Addr) bool {
	if nat64.Contains(ip) {
		ip, _ = netip.AddrFromSlice(ip.AsSlice()[nat64Size:])
	}
	return (ip.Is4() || global6.Contains(ip)) && !isIn(ip, special)
}

// checked returns what checks the address of each connection when it is made, which no answer of a name server can get around.
func checked(networks []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := to.Addr().Unmap().WithZone("")
		if !isPublic(ip) && !isIn(ip, networks) {
			return fmt.Errorf("%s: %w", ip, errNotAllowed)
		}
		return nil
	}
}
