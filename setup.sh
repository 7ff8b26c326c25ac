#!/usr/bin/env bash
# Installs what Warpbook needs and prints a table of everything found.
# See ./setup.sh --help. Safe to run again; --check changes nothing.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

usage() {
    cat <<'EOF'
usage: ./setup.sh [FLAGS]

Installs what is missing to build and test Warpbook, and prints a table of it:
Debian packages with apt, through sudo unless you are root; nvcc from NVIDIA's
Python wheels into .venv-cuda/ if no CUDA 13 toolkit is found; the notebooks'
packages into .venv-notebooks/.

  --check         change nothing; exit 1 if something required is missing, or if
                  Bazel cannot build in this folder
  --no-cuda       do not install nvcc; the CPU labs work without it
  --no-notebooks  do not install Jupyter; everything else works without it
  --with-fuzz     also clang with libFuzzer, for bazel run --config=fuzz
  --dev           also clang with libFuzzer, clang-format, clangd, gdb, jq, shellcheck, xmllint,
                  qemu-user and chromium
  --cluster       also Slurm and munge, which grade_class --backend slurm and its tests use; starts
                  no daemon of its own and writes no setting of a cluster
  --help          print this and exit

A CUDA toolkit is looked for in $CUDA_HOME, on $PATH, in /usr/local/cuda and in
.venv-cuda/. WARPBOOK_CUDA=off ignores all of them; WARPBOOK_GPU=off ignores the
GPU.
EOF
}

# These versions were tested together; cuda_fp16.h includes headers of the last one.
readonly CUDA_WHEELS=(
    nvidia-cuda-nvcc==13.0.88
    nvidia-cuda-runtime==13.0.96
    nvidia-cuda-crt==13.0.88
    nvidia-nvvm==13.0.88
    nvidia-cuda-cccl==13.0.85
)
readonly CUDA_FOLDER=.venv-cuda

# The notebooks' pinned packages, and the folder that they are installed into.
readonly NOTEBOOK_WHEELS=notebooks/requirements.txt
readonly NOTEBOOK_FOLDER=.venv-notebooks

check_only=false
want_cuda=true
want_notebooks=true
want_fuzz=false
want_dev=false
want_cluster=false

parse_flags() {
    local flag
    for flag in "$@"; do
        case "$flag" in
        --check) check_only=true ;;
        --no-cuda) want_cuda=false ;;
        --no-notebooks) want_notebooks=false ;;
        --with-fuzz) want_fuzz=true ;;
        --dev) want_fuzz=true want_dev=true ;;
        --cluster) want_cluster=true ;;
        --help | -h)
            usage
            exit 0
            ;;
        *)
            echo "setup.sh: unknown flag '$flag'; --help lists them" >&2
            exit 2
            ;;
        esac
    done
    if [ "${WARPBOOK_CUDA:-}" = off ]; then
        want_cuda=false
    fi
}

# Progress is shown only on a terminal.
progress() {
    if [ -t 2 ]; then
        echo "setup.sh: $*" >&2
    fi
}

fail() {
    echo "setup.sh: $*" >&2
    exit 1
}

# Bazel refuses to work in such a folder, so nothing else helps until the clone is moved.
check_folder() {
    local path
    path=$(pwd -P)
    if LC_ALL=C grep -q '[^!-~]' <<<"$path"; then
        fail "Bazel cannot build in '$path': the path has a space, or a letter that is not ASCII; move the clone to another"
    fi
}

# --- Probes: each prints "VERSION<tab>WHERE", or fails if the part is missing. ---

library_folders() {
    local triplet
    echo /usr/local/lib
    for triplet in x86_64-linux-gnu aarch64-linux-gnu; do
        echo "/usr/lib/$triplet"
    done
    echo /usr/lib64
    echo /usr/lib
}

# probe_library PACKAGE LIBRARY HEADER
probe_library() {
    local folder version root found=""
    for root in /usr/local/include /usr/include /usr/include/{x86_64,aarch64}-linux-gnu; do
        if [ -e "$root/$3" ]; then
            found=yes
        fi
    done
    [ -n "$found" ] || return 1
    for folder in $(library_folders); do
        if [ -e "$folder/lib$2.a" ] || [ -e "$folder/lib$2.so" ]; then
            version=$(package_version "$1")
            printf '%s\t%s\n' "${version:--}" "$folder"
            return 0
        fi
    done
    return 1
}

# package_version PACKAGE: upstream's version of a Debian package, or nothing.
package_version() {
    dpkg-query -W -f '${Version}\n' "$1" 2>/dev/null | head -n 1 | sed 's/^[0-9]*://; s/[-+].*//'
}

# probe_command NAME: the first number with a dot that --version prints.
probe_command() {
    local path version
    path=$(command -v "$1") || return 1
    version=$("$1" --version 2>/dev/null </dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1)
    printf '%s\t%s\n' "${version:--}" "$path"
}

probe_download() {
    probe_command curl || probe_command wget
}

# Debian's Bazel names no version of its own.
probe_bazel() {
    local path version
    path=$(command -v bazel) || return 1
    version=$(package_version bazel-bootstrap)
    if [ -z "$version" ]; then
        probe_command bazel
        return
    fi
    printf '%s\t%s\n' "$version" "$path"
}

# Debian's Bazel needs these rules from a package; other Bazels contain them.
probe_java_rules() {
    if [ -d /usr/share/bazel/rules/java ]; then
        printf -- '-\t/usr/share/bazel/rules/java\n'
        return 0
    fi
    command -v bazel >/dev/null && [ ! -e /usr/bin/bazel-4 ] && printf -- '-\tinside Bazel\n'
}

# Folders that may hold a CUDA toolkit, in the order of common/bazel/cuda_configure.bzl.
cuda_folders() {
    local nvcc
    if [ -n "${CUDA_HOME:-}" ]; then
        echo "$CUDA_HOME"
    fi
    if nvcc=$(command -v nvcc); then
        dirname "$(dirname "$(readlink -f "$nvcc")")"
    fi
    echo /usr/local/cuda
    ls -d "$PWD/$CUDA_FOLDER"/lib/python3*/site-packages/nvidia/cu13 2>/dev/null
}

has_cudart() {
    local folder
    for folder in "$1"/lib64 "$1"/lib "$1"/targets/{x86_64-linux,sbsa-linux}/lib; do
        if [ -e "$folder/libcudart.so.13" ]; then
            [ -e "$1/include/cuda_runtime_api.h" ]
            return
        fi
    done
    return 1
}

probe_nvcc() {
    local folder version
    [ "${WARPBOOK_CUDA:-}" != off ] || return 1
    while read -r folder; do
        if [ -x "$folder/bin/nvcc" ] && has_cudart "$folder" &&
            version=$("$folder/bin/nvcc" --version 2>/dev/null); then
            version=$(sed -n 's/.*, V\([0-9.]*\)$/\1/p' <<<"$version")
            printf '%s\t%s\n' "${version:--}" "$folder"
            return 0
        fi
    done < <(cuda_folders)
    return 1
}

# The folder has a copy of the package list that it was installed from.
probe_jupyter() {
    local version
    cmp -s "$NOTEBOOK_WHEELS" "$NOTEBOOK_FOLDER/requirements.txt" || return 1
    version=$(sed -n 's/^nbclient==//p' "$NOTEBOOK_WHEELS")
    "$NOTEBOOK_FOLDER/bin/python" -c '' 2>/dev/null || return 1
    printf '%s\t%s\n' "$version" "$PWD/$NOTEBOOK_FOLDER"
}

# find_gpu: prints a line such as "90 13000 NVIDIA H200" for each GPU, as
# common/bazel/cuda_configure.bzl reads it, or a reason on standard error.
find_gpu() {
    local folder code
    if [ "${WARPBOOK_GPU:-}" = off ]; then
        echo "switched off" >&2
        return 1
    fi
    folder=$(mktemp -d) || return 1
    if gcc -o "$folder/find_gpu" common/bazel/find_gpu.c -ldl 2>/dev/null; then
        "$folder/find_gpu"
        code=$?
    else
        echo "there is no C compiler to look for a GPU" >&2
        code=1
    fi
    rm -rf -- "$folder"
    return $code
}

# The version is the CUDA version that the driver supports.
probe_gpu() {
    local found version name
    found=$(find_gpu 2>/dev/null) || return 1
    read -r _ version name <<<"$found"
    printf '%d.%d\t%s\n' $((version / 1000)) $((version % 1000 / 10)) "$name"
}

# libFuzzer belongs to clang but is in a separate package.
probe_libfuzzer() {
    local runtime
    command -v clang >/dev/null || return 1
    runtime=$(clang --print-resource-dir)/lib/linux
    ls "$runtime"/libclang_rt.fuzzer-*.a >/dev/null 2>&1 || return 1
    probe_command clang
}

# What a head node runs, and slurmd, for the tests. The daemons are not on every user's PATH.
probe_slurm() {
    local program version
    for program in slurmctld slurmd sbatch squeue scancel munged mungekey; do
        PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$program" >/dev/null || return 1
    done
    version=$(sinfo --version 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+')
    printf '%s\t%s\n' "${version:--}" "$(command -v sbatch)"
}

# --- Parts: NAME | required or optional | Debian packages | probe. ---

parts() {
    local extra=optional
    $want_fuzz && extra=required
    cat <<EOF
Bazel|required|bazel-bootstrap|probe_bazel
Bazel's Java rules|required|bazel-rules-java|probe_java_rules
C compiler|required|gcc libc6-dev|probe_command gcc
C++ compiler|required|g++|probe_command g++
GoogleTest|required|libgtest-dev|probe_library libgtest-dev gtest gtest/gtest.h
cJSON|required|libcjson-dev|probe_library libcjson-dev cjson cjson/cJSON.h
utf8proc|required|libutf8proc-dev|probe_library libutf8proc-dev utf8proc utf8proc.h
PCRE2|required|libpcre2-dev|probe_library libpcre2-dev pcre2-8 pcre2.h
libseccomp|required|libseccomp-dev|probe_library libseccomp-dev seccomp seccomp.h
liblzma|required|liblzma-dev|probe_library liblzma-dev lzma lzma.h
minizip|required|libminizip-dev zlib1g-dev|probe_library libminizip-dev minizip minizip/unzip.h
OpenBLAS|required|libopenblas-dev|probe_library libopenblas-dev openblas cblas.h
git|required|git|probe_command git
tar|required|tar|probe_command tar
xz|required|xz-utils|probe_command xz
curl or wget|required|curl|probe_download
nvcc (CUDA 13)|optional||probe_nvcc
GPU and its driver|optional||probe_gpu
Jupyter (notebooks)|optional||probe_jupyter
clang and libFuzzer|$extra|clang libclang-rt-dev|probe_libfuzzer
EOF
    extra=optional
    $want_dev && extra=required
    cat <<EOF
clang-format|$extra|clang-format|probe_command clang-format
clangd|$extra|clangd|probe_command clangd
gdb|$extra|gdb|probe_command gdb
jq|$extra|jq|probe_command jq
shellcheck|$extra|shellcheck|probe_command shellcheck
xmllint|$extra|libxml2-utils|probe_command xmllint
qemu (old CPUs)|$extra|qemu-user|probe_command qemu-x86_64
chromium|$extra|chromium|probe_command chromium
EOF
    extra=optional
    $want_cluster && extra=required
    cat <<EOF
Slurm and munge|$extra|slurmctld slurmd slurm-client munge|probe_slurm
EOF
}

# Debian packages of the required parts that are missing.
missing_packages() {
    local name need packages probe
    while IFS='|' read -r name need packages probe; do
        # shellcheck disable=SC2086 # a probe is a command and its arguments
        if [ "$need" = required ] && ! $probe >/dev/null; then
            echo "$packages"
        fi
    done < <(parts)
}

print_table() {
    local name need packages probe found state missing=0
    printf '%-20s  %-12s  %-8s  %s\n' "part" "version" "state" "where"
    while IFS='|' read -r name need packages probe; do
        state=ok
        # shellcheck disable=SC2086 # a probe is a command and its arguments
        if ! found=$($probe); then
            found=$(printf -- '-\t%s' "$(how_to_get "$name" "$packages")")
            state=optional
            if [ "$need" = required ]; then
                state=missing
                missing=1
            fi
        fi
        printf '%-20s  %-12s  %-8s  %s\n' "$name" "${found%%$'\t'*}" "$state" "${found#*$'\t'}"
    done < <(parts)
    return $missing
}

# how_to_get NAME PACKAGES: the table's text for a missing part.
how_to_get() {
    case "$1" in
    nvcc*) echo "CUDA targets are skipped: ${cuda_reason:-./setup.sh fetches it}" ;;
    Jupyter*) echo "notebooks and their tests are skipped: ${notebooks_reason:-./setup.sh fetches it}" ;;
    GPU*) echo "CUDA programs run on simt: $(find_gpu 2>&1 >/dev/null)" ;;
    Slurm*) echo "tests of grade_class on Slurm are skipped: ./setup.sh --cluster installs it" ;;
    *) echo "Debian: $2" ;;
    esac
}

# --- Installing. ---

log=""
cuda_reason=""
notebooks_reason=""
installed=false

# The log stays where something failed.
keep_log=false
clean_up() {
    rm -rf -- "$CUDA_FOLDER.part" "$NOTEBOOK_FOLDER.part"
    if [ -n "$log" ] && ! $keep_log; then
        rm -f -- "$log"
    fi
}

# cause_from FIRST_LINE: what apt-get, pip or Python said of its failure, from that line of the log
# on; their first error is the cause, and the others follow from it.
cause_from() {
    local said folder
    for folder in . "${TMPDIR:-/tmp}" /var/cache/apt; do
        if [ "$(df -Pk "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }')" -lt 51200 ] 2>/dev/null; then
            printf "no space left on the disk of '%s'; the whole log: %s\n" "$folder" "$log"
            return
        fi
    done
    said=$(tail -n "+$1" "$log" | grep -m 1 -E 'No space left|Temporary failure|Could not resolve|Network is unreachable|Connection (refused|timed out)|timed out')
    if [ -z "$said" ]; then
        said=$(tail -n "+$1" "$log" | grep -m 1 -E '^(E:|Err:|ERROR:|Error:)|Error: ')
    fi
    if [ -z "$said" ]; then
        said=$(tail -n "+$1" "$log" | tail -n 1)
    fi
    printf '%s; the whole log: %s\n' "$(cut -c 1-200 <<<"${said:-no message}" | sed 's/^ *//')" "$log"
}

log_lines() {
    wc -l <"$log"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Names differ between releases of Debian and Ubuntu. What apt does not know is left out; whether the
# part works all the same is seen afterwards.
unknown_packages=()

# install_packages NAME...: prints nothing; a failure is in the log.
install_packages() {
    local name known=()
    if ! command -v apt-get >/dev/null; then
        fail "this is not a Debian system; install the equivalents of: $*"
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        fail "you are not root and there is no sudo; run as root: apt-get install $*"
    fi
    progress "installing $*"
    if ! as_root apt-get update >>"$log" 2>&1; then
        return 1
    fi
    for name in "$@"; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            known+=("$name")
        else
            unknown_packages+=("$name")
        fi
    done
    if [ ${#known[@]} -gt 0 ]; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
            "${known[@]}" >>"$log" 2>&1 </dev/null || return 1
        installed=true
    fi
}

install_required() {
    local packages first
    mapfile -t packages < <(missing_packages | tr ' ' '\n')
    first=$(($(log_lines) + 1))
    if [ ${#packages[@]} -gt 0 ] && ! install_packages "${packages[@]}"; then
        keep_log=true
        fail "apt-get failed: $(cause_from "$first")"
    fi
}

# fetch_wheels FOLDER WHAT PIP_ARGUMENTS...: installs packages from PyPI into a virtual environment,
# which gets its name only when it is complete. On failure sets `reason`.
reason=""
fetch_wheels() {
    local folder=$1 what=$2 first
    shift 2
    rm -rf -- "$folder.part"
    first=$(($(log_lines) + 1))
    if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1 && ! install_packages python3-venv; then
        keep_log=true
        reason="python3-venv could not be installed: $(cause_from "$first")"
        return 1
    fi
    if ! python3 -m venv "$folder.part" >>"$log" 2>&1 ||
        ! "$folder.part/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
            --only-binary :all: "$@" >>"$log" 2>&1 </dev/null; then
        keep_log=true
        reason="$what could not be fetched: $(cause_from "$first")"
        return 1
    fi
    rm -rf -- "$folder"
    mv -- "$folder.part" "$folder"
    installed=true
}

install_cuda_wheels() {
    progress "no CUDA toolkit found; fetching nvcc as NVIDIA's wheels (100 MB)"
    fetch_wheels "$CUDA_FOLDER" "NVIDIA's wheels" "${CUDA_WHEELS[@]}" || cuda_reason=$reason
}

install_notebook_wheels() {
    progress "fetching the notebooks' packages (50 MB)"
    if fetch_wheels "$NOTEBOOK_FOLDER" "Jupyter and matplotlib" -r "$NOTEBOOK_WHEELS"; then
        cp -- "$NOTEBOOK_WHEELS" "$NOTEBOOK_FOLDER/requirements.txt"
    else
        notebooks_reason=$reason
    fi
}

install_missing() {
    trap clean_up EXIT
    log=$(mktemp "${TMPDIR:-/tmp}/warpbook-setup.XXXXXX.log") || exit 1
    install_required
    if $want_cuda && ! probe_nvcc >/dev/null; then
        install_cuda_wheels
    fi
    if $want_notebooks && ! probe_jupyter >/dev/null; then
        install_notebook_wheels
    fi
    # A running Bazel server would go on with what it found before.
    if $installed; then
        bazel shutdown >/dev/null 2>&1
    fi
}

what_to_do() {
    if [ ${#unknown_packages[@]} -eq 0 ]; then
        echo "./setup.sh installs it"
    elif grep -q 'Failed to fetch' "$log"; then # of which apt-get only warns
        echo "apt's lists are not up to date: $(grep -m 1 'Failed to fetch' "$log"); the whole log: $log"
    else
        echo "apt has no package named: ${unknown_packages[*]} (Ubuntu has them in 'universe'; instead of bazel-bootstrap, Bazelisk will do)"
    fi
}

parse_flags "$@"
if ! $want_cuda; then
    cuda_reason="switched off"
fi
if ! $want_notebooks; then
    notebooks_reason="switched off"
fi
if ! $check_only; then
    check_folder
    install_missing
fi
if ! print_table; then
    todo=$(what_to_do)
    keep_log=true
    fail "something required is missing; $todo"
fi
check_folder
