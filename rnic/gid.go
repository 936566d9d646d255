package rnic

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// gids reads the used entries of the GID table of the port at dir. A table is
// up to a thousand files, nearly all of them empty, so type and netdev are
// read for used entries only.
func (r *reader) gids(dir []string, p Port) (entries []GIDEntry, tableLen int) {
	at := func(elem ...string) []string { return append(slices.Clone(dir), elem...) }
	indexes := r.numbers(at("gids")...)
	entries = []GIDEntry{}
	for _, i := range indexes {
		file := strconv.Itoa(i)
		gid := parsed(r.sysfs, r.must(at("gids", file)...), ParseGID, at("gids", file)...)
		if gid.IsZero() {
			continue
		}
		entries = append(entries, GIDEntry{
			Index:  i,
			GID:    gid,
			Type:   r.gidType(at("gid_attrs", "types", file), p.Protocol),
			Netdev: r.gidNetdev(at("gid_attrs", "ndevs", file), p),
		})
	}
	return entries, len(indexes)
}

func (r *reader) gidType(file []string, p Protocol) GIDType {
	if p == ProtocolIWARP {
		return GIDTypeUnknown // an iWARP GID is a MAC: no encapsulation to choose
	}
	return parsed(r.sysfs, r.gidAttr(file), func(s string) (GIDType, error) { return parseGIDType(s, p) }, file...)
}

// gidNetdev is the netdev that the entry's address is on. InfiniBand has none.
func (r *reader) gidNetdev(file []string, p Port) string {
	if p.Protocol == ProtocolIB || p.Protocol == ProtocolOPA {
		return ""
	}
	v := r.gidAttr(file)
	if v != "" && checkName("netdev", v, maxNetdev) != nil {
		r.problem(r.path(file...), errors.New("not a netdev's name"))
		return ""
	}
	return v
}

// gidAttr reads an attribute of a GID entry. EINVAL is how the kernel says that
// the entry has none of it, or has just become empty; siw on 6.1 always does.
func (r *reader) gidAttr(file []string) string {
	path := r.path(file...)
	v, err := readAttr(path)
	if err != nil && !absent(err) && !errors.Is(err, unix.EINVAL) {
		r.problem(path, err)
	}
	return v
}
