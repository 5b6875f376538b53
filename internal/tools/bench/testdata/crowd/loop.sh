# What ralph is compared with: sh loop.sh SECONDS WORKERS NAME… has so many agents work at once, each
# in a work tree of its own. Their work is merged under a gate; on a conflict, or when what is merged
# does not pass, the task begins again on the new main.
seconds=$1 workers=$2
shift 2
work() {
	git worktree add -q --detach "$1" main
	cd "$1" || exit 1
	until
		git checkout -q --detach main && git clean -qfd && sh agent.sh "$seconds" "$2" && git add -A && git commit -qm "$2" &&
			flock "$root" sh -c 'git merge -q main && sh verify.sh && git -C "$0" merge -q --ff-only "$(git rev-parse HEAD)"' "$root"
	do git merge --abort 2>/dev/null; done
	git worktree remove --force "$1"
}
root=$PWD
export root seconds
for name; do
	while test "$(jobs -r | wc -l)" -ge "$workers"; do wait -n; done
	work "$root-$name" "$name" &
done
wait
