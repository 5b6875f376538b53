package worktree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Marks of an entry of git's index by which git does not look at a file; see
// gitformat-index(5).
const (
	assumeValid  = 1 << 15 // git update-index --assume-unchanged
	extended     = 1 << 14 // further flags follow
	skipWorktree = 1 << 14 // of those: git update-index --skip-worktree
)

// gitlinkMode is the mode of an entry that stands for a repository within.
const gitlinkMode = 0o160000

// lookAtAll takes the marks away from the entries of an index by which a file that was
// changed would not be seen; an agent may set them. A file that is not there for a
// sparse checkout keeps its own. It returns the repositories within. What cannot be
// read as an index stays as it is, for git to judge. The checksum at the end stays too:
// git does not read it, and a split index is known by it.
func (t *Tree) lookAtAll(index []byte) (links []gitlink) {
	if len(index) < 12 || string(index[:4]) != "DIRC" {
		return nil
	}
	version, n := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	hash := 20
	if t.longIDs {
		hash = 32
	}
	var name []byte
	for at := 12; n > 0; n-- {
		e := entry{index: index, at: at, flags: at + 40 + hash, version: version}
		if !e.read(name) {
			return links
		}
		if mode := binary.BigEndian.Uint32(index[at+24:]); mode == gitlinkMode && len(e.name) > 0 {
			links = append(links, gitlink{string(e.name), hex.EncodeToString(index[at+40 : at+40+hash])})
		}
		if f := e.get(e.flags); f&assumeValid != 0 {
			e.set(e.flags, f&^assumeValid)
		}
		if e.more > 0 {
			if f := e.get(e.more); f&skipWorktree != 0 && exists(filepath.Join(t.top(), string(e.name))) {
				e.set(e.more, f&^skipWorktree)
			}
		}
		at, name = e.end, e.name
	}
	return links
}

// An entry is a file in an index.
type entry struct {
	index   []byte
	version uint32
	at      int // where it begins
	flags   int // where its flags are
	more    int // where further flags are, 0 if there are none
	end     int
	name    []byte
}

func (e *entry) get(at int) uint16    { return binary.BigEndian.Uint16(e.index[at:]) }
func (e *entry) set(at int, f uint16) { binary.BigEndian.PutUint16(e.index[at:], f) }

// read finds the parts of an entry, whose name may be told by the one before. It is
// false if there is none.
func (e *entry) read(before []byte) bool {
	begin := e.flags + 2
	if begin+2 > len(e.index) {
		return false
	}
	if e.get(e.flags)&extended != 0 && e.version >= 3 {
		e.more = begin
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
	if length < 0 {
		return false
	}
	e.name = append(bytes.Clone(before), e.index[begin:begin+length]...)
	e.end = begin + length + 1
	if e.version != 4 { // one to eight zeros, up to a multiple of eight
		e.end = e.at + (begin+length-e.at+8)&^7
	}
	return e.end <= len(e.index)
}

// offset reads a number as version 4 of the index has it, and how many bytes it
// takes; 0 if there is none.
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

// exists reports whether something is there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
