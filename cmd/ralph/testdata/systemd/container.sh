#!/bin/sh
# container.sh COMMAND… runs a command beside a user's systemd of its own, in
# namespaces and cgroups of their own, of which nothing is left. Needs root.
set -e
if [ "$1" != inside ]; then
	[ -x /lib/systemd/systemd ] || { echo "systemd is not installed"; exit 1; }
	# systemd keeps its services in the cgroups of version 2 or, on older systems, in those named systemd.
	groups=$(awk '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /name=systemd/) { print $2 "/ralph-test-'$$'" }' /proc/mounts)
	[ -n "$groups" ] || { echo "no cgroups"; exit 1; }
	# shellcheck disable=SC2086 # one argument for each
	mkdir $groups
	status=0
	groups=$groups sh -c 'for g in $groups; do echo $$ > "$g/cgroup.procs"; done
		exec unshare --cgroup --mount --pid --fork --kill-child --ipc --uts --mount-proc sh "$0" inside "$@"' "$0" "$@" || status=$?
	for g in $groups; do
		find "$g" -depth -type d -exec rmdir {} +
	done
	exit $status
fi
shift
mount --make-rprivate /
kinds=$(awk '$3 == "cgroup2" { print "cgroup2 none" } $3 == "cgroup" && $4 ~ /name=systemd/ { print "cgroup none,name=systemd" }' /proc/mounts)
if [ "$kinds" = "cgroup2 none" ]; then
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
	mount -t tmpfs tmpfs /sys/fs/cgroup
	mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
	mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
fi
mount -t tmpfs tmpfs /run
mkdir -p /run/user /run/systemd/system
export XDG_RUNTIME_DIR=/run/user
/lib/systemd/systemd --user --log-target=console > "$HOME/systemd.log" 2>&1 &
manager=$!
timeout 30 sh -c 'until [ -S /run/user/systemd/private ] && systemctl --user is-system-running --wait; do sleep 0.1; done' > "$HOME/started.log" 2>&1 || {
	cat "$HOME/systemd.log" "$HOME/started.log"
	exit 1
}
status=0
"$@" || { status=$?; cat "$HOME/systemd.log"; }
kill $manager
wait $manager || true
exit $status
