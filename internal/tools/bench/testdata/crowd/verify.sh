# Renaming greet_old and calling it pass alone, and fail when both are merged.
for f in ./use_*.sh; do sh -ec ". ./lib.sh; . $f" || exit 1; done
! grep -q '^<<<<<<<' list.txt use_*.sh lib.sh
