#!/bin/sh
# A calculator: calc.sh OPERATION A B
op=$1 a=$2 b=$3
case $op in
add) echo $((a + b)) ;;
# more operations go here
*) echo "unknown operation $op" >&2; exit 2 ;;
esac
