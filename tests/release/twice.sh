#!/bin/sh
# make release-check: reprotest builds a snapshot of the commit twice, the second time with another environment, path, kernel's version, address
# layout, number of processors, time, order of files (disorderfs), host's name, home, language, search path, time zone and umask, and compares all
# files. Another user is tried by tests/all/release.py. Then with a time stamp planted, which must be noticed. Needs root.
set -u

cd "$(dirname "$0")/../.." || exit 1
sh tests/tools/need.sh git:git python3:python3 reprotest:reprotest disorderfs:disorderfs fuse3:fusermount faketime:faketime \
    diffoscope-minimal:diffoscope util-linux:unshare || exit 1
[ "$(id -u)" = 0 ] || {
    echo "twice.sh: needs root, to vary the host's name and the order of files" >&2
    exit 1
}
work=$(mktemp -d) || exit 1
# shellcheck disable=SC2064 # now
trap "rm -rf '$work'" EXIT
trap 'exit 130' INT TERM HUP
vary=-user_group
mkdir "$work/a" "$work/b"
if disorderfs "$work/a" "$work/b" >/dev/null 2>&1; then
    fusermount -u "$work/b"
else
    echo "note: disorderfs can not be mounted here, so the order of files is not varied"
    vary=$vary,-fileordering
fi

built_twice() { # whether reprotest finds no difference; what it says is in $work/log
    reprotest --verbosity 1 --min-cpus 1 --vary="$vary" -s "$work/tree" "python3 tests/release/release.py --snapshot" 'build/release/*' \
        >"$work/log" 2>&1
}

[ -z "$(git status --porcelain)" ] || echo "note: only what is committed is tried; there are uncommitted changes"
git clone -q . "$work/tree" || exit 1
if built_twice && grep -q "^Reproduction successful" "$work/log"; then
    sed -n 's/^INFO:reprotest:build "experiment-1": /varied: /p' "$work/log"
    grep -E '^[0-9a-f]{64}  ' "$work/log"
    echo "ok: reprotest built the same files twice"
else
    tail -n 40 "$work/log"
    echo "FAILED: reprotest did not build the same files twice"
    exit 1
fi
sed -i 's/compresslevel=9, mtime=0)/compresslevel=9)/' "$work/tree/tests/release/release.py"
git -C "$work/tree" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false commit -qam "A time stamp" || exit 1
if built_twice || ! grep -q "tar.gz" "$work/log" || grep -q "^Reproduction successful" "$work/log"; then
    echo "FAILED: a time stamp in the tarball was not noticed"
    exit 1
fi
echo "ok: a time stamp in the tarball is noticed: $(grep -m 1 -oE 'gzip compressed data.*' "$work/log" || echo "files differ")"
