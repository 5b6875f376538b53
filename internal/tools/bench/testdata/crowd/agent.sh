# What the agent of a task does: sh agent.sh SECONDS NAME [stubborn]. It thinks so long, resolves what is in
# conflict by keeping both sides, unless it is stubborn, and does its work. It edits files alone and knows no git:
# told that the target has moved (SECONDS is "merge"), it does the same. RALPH_TASK_ID makes each task's work its own.
[ "$1" = merge ] || sleep "$1"
[ "$3" = stubborn ] || sed -i '/^<<<<<<< /d; /^=======$/d; /^>>>>>>> /d' *.txt *.sh
own=$2$RALPH_TASK_ID
case $2 in
rename) sed -i s/greet_old/greet_new/g use_*.sh lib.sh ;;
call)
	test -e use_call.sh || echo greet_old >use_call.sh
	! grep -q greet_new lib.sh || sed -i s/greet_old/greet_new/g use_*.sh
	;;
own*) echo "$own" >"$own.txt" ;;
*) grep -qx "$own" list.txt || sed -i "s/^animals\$/animals\n$own/" list.txt ;; # all at the same place
esac
