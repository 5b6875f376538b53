package worktree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"os"
)

// extended marks an index entry that has further flags; see gitformat-index(5).
const extended = 1 << 14

// skipWorktree marks, in the further flags, an entry whose file is left out of a sparse work tree.
const skipWorktree = 1 << 14

// gitlinkMode is the mode of an entry for a nested repository.
const gitlinkMode = 0o160000

// entries returns the entries of the parseable part of an index.
func (t *Tree) entries(index []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		if len(index) < 12 || string(index[:4]) != "DIRC" {
			return
		}
		version, n := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
		hash := 20
		if t.longIDs {
			hash = 32
		}
		var name []byte
		for at := 12; n > 0; n-- {
			e := entry{index: index, at: at, flags: at + 40 + hash, version: version}
			if !e.read(name) || !yield(e) {
				return
			}
			at, name = e.end, e.name
		}
	}
}

// maxName exceeds the length of any path on disk, in bytes. Without it, a small index of version 4
// could produce ever longer names.
const maxName = 4096

// An entry is a file in an index.
type entry struct {
	index   []byte
	version uint32
	at      int // offset of the entry
	flags   int // offset of its flags
	end     int
	name    []byte
}

func (e *entry) get(at int) uint16 { return binary.BigEndian.Uint16(e.index[at:]) }

// skipped reports whether the entry's file is left out of a sparse work tree.
func (e *entry) skipped() bool {
	return e.get(e.flags)&extended != 0 && e.version >= 3 && e.get(e.flags+2)&skipWorktree != 0
}

// link returns the commit of a nested repository's entry; "" for a file.
func (e *entry) link() string {
	if binary.BigEndian.Uint32(e.index[e.at+24:]) != gitlinkMode || len(e.name) == 0 {
		return ""
	}
	return hex.EncodeToString(e.index[e.at+40 : e.flags])
}

// read parses an entry; its name may share a prefix with the previous name. It returns false if
// there is no entry.
func (e *entry) read(before []byte) bool {
	begin := e.flags + 2
	if begin+2 > len(e.index) {
		return false
	}
	if e.get(e.flags)&extended != 0 && e.version >= 3 {
		begin += 2
	}
	if e.version == 4 {
		drop, n := offset(e.index[begin:])
		if n == 0 || drop > len(before) {
			return false
		}
		begin += n
		before = before[:len(before)-drop]
	} else {
		before = nil
	}
	length := bytes.IndexByte(e.index[begin:], 0)
	if length < 0 || len(before)+length > maxName {
		return false
	}
	e.name = append(bytes.Clone(before), e.index[begin:begin+length]...)
	e.end = begin + length + 1
	if e.version != 4 { // padded with one to eight zeros to a multiple of eight
		e.end = e.at + (begin+length-e.at+8)&^7
	}
	return e.end <= len(e.index)
}

// offset decodes a number in the format of index version 4 and returns the bytes read; 0 bytes if
// there is none.
func offset(b []byte) (v, n int) {
	for i, c := range b[:min(len(b), 5)] {
		if i > 0 {
			v++
		}
		v = v<<7 | int(c&127)
		if c&128 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}

// exists reports whether a path exists; it does not follow links.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
