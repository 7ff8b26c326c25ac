#!/bin/sh
# Makes the package: package.sh TAR VERSION SIMT LIBRARY README LICENSE PAGE MAN SCHEMA WORKFLOW MODEL
#   NCCL HEADER DRIVER
# The same files give the same tar, byte for byte.
set -eu
tar=$1 version=$2 simt=$3 library=$4 readme=$5 license=$6 page=$7 man=$8
shift 8
schema=$1 workflow=$2 model=$3 nccl=$4 header=$5 driver=$6
top=simt-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$top
mkdir -p "$root/bin" "$root/lib" "$root/include" "$root/share/man/man1" "$root/share/doc/simt"
cp "$simt" "$root/bin/simt"
cp "$library" "$root/lib/libcudart.so.13"
cp "$nccl" "$root/lib/libnccl.so.2"
cp "$driver" "$root/lib/libcuda.so.1"
cp "$header" "$root/include/nccl.h"
cp "$page" "$root/README.md"
cp "$license" "$root/LICENSE"
cp "$schema" "$root/share/doc/simt/report.schema.json"
cp "$workflow" "$root/share/doc/simt/github-actions.yml"
cp "$model" "$root/share/doc/simt/MODEL.md"
sed "s/@VERSION@/$version/" "$man" >"$root/share/man/man1/simt.1"
# The page of limits is the sections of simt's README that say them; links lead out of the package.
{
    echo "# What simt $version checks, runs and refuses"
    awk '/^## / { wanted = $0 == "## What is checked" || $0 == "## What runs" || $0 == "## Limits"; if (wanted) print "" } wanted' "$readme" |
        sed 's/\[\([^]]*\)\]([^)]*)/\1/g'
} >"$root/share/doc/simt/limits.md"
find "$root" -type f -exec chmod 644 {} +
chmod 755 "$root/bin/simt" "$root"/lib/lib*
find "$root" -type d -exec chmod 755 {} +
strip --strip-unneeded "$root/bin/simt" "$root"/lib/lib*
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$work" -cf - "$top" | gzip -9n >"$tar"
