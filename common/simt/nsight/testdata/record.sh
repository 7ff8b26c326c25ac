#!/bin/bash
# Records what Nsight Compute exports of the kernels in known.cu, with the options of nsight_run.c,
# cut to the columns that nsight.h names and to one instruction a line. On a machine with a GPU:
#
#   bazel build --config=gpu --@rules_cuda//cuda:archs=compute_90a:sm_90a //common/simt/nsight:known
#   common/simt/nsight/testdata/record.sh bazel-bin/common/simt/nsight/known >known_h100.csv
#
# Recorded with Nsight Compute 2025.3.1 on an NVIDIA H100 80GB HBM3. The counts follow from the
# kernels; times and samples are those of one run.
set -eu
header=$(dirname "$0")/../nsight.h
metrics=$(grep -o 'X([A-Z0-9_]*, "[^"]*"' "$header" | cut -d '"' -f 2 | paste -sd ,)
report=$(mktemp -d)/known.ncu-rep
ncu --clock-control none --filter-mode per-launch-config --launch-count 1 --import-source yes \
    --source-folders "$(dirname "$0")" --section SourceCounters --section LaunchStats \
    --section Occupancy --metrics "$metrics" --export "$report" "$1" >&2
ncu --import "$report" --page raw --csv --print-units base |
    awk -v names="ID,Process ID,Kernel Name,Block Size,Grid Size,device__attribute_display_name,$metrics" '
        BEGIN {
            FS = "\",\""
            count = split(names, name, ",")
        }
        {
            sub(/^"/, "")
            sub(/"$/, "")
        }
        NR == 1 {
            for (i = 1; i <= NF; i++) {
                at[$i] = i
            }
        }
        {
            line = ""
            for (i = 1; i <= count; i++) {
                if (name[i] in at) {
                    line = line (i > 1 ? "\",\"" : "\"") $at[name[i]]
                }
            }
            print line "\""
        }'
ncu --import "$report" --page source --csv --print-source cuda,sass |
    awk '/^"",/ { if (kept++ == 0) print; next } { kept = 0; print }' |
    sed 's|"/[^"]*/execroot/warpbook/|"/home/user/.cache/bazel/execroot/warpbook/|'
