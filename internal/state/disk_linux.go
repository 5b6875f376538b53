package state

import "golang.org/x/sys/unix"

// networkDisks are the network file systems by number.
var networkDisks = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.NCP_SUPER_MAGIC: "NCP", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x01161970: "GFS2",
}

// networkDisk names the file system of a folder if it is a network file system; "" if it is not, or
// if that is unknown.
var networkDisk = func(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	return networkDisks[int64(s.Type)]
}
