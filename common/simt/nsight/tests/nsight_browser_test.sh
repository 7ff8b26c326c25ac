#!/bin/bash
# The page of a recorded export in a browser: it draws itself, with no error, says that it is measured,
# and what the profiler does not know.
# usage: nsight_browser_test.sh HELPERS XRAY EXPORT
set -u
# shellcheck source=common/simt/page/browser.sh
. "$1"
unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY

"$2" --from "$3" --output "$page" >/dev/null || fail "no page"
draws "#kernel=1"
shows 'measured on NVIDIA H100 80GB HBM3'
shows '<h2 title="column(float *, const float *)">column</h2>'
shows 'common/simt/nsight/testdata/known.cu</h3>'
shows 'sum += tile[warp][lane * 32 + row];'
shows 'It takes 32.0 times the wavefronts that would do.'
shows 'waiting for shared memory, shuffles or special functions (short scoreboard)'
shows 'Nsight Compute does not record which addresses the lanes had.'
shows 'as if all blocks took equally long: Nsight Compute does not record when a block begins.'
shows '8 of 64 warps'
shows 'peaks at the clocks of this launch'
grep -q 'odelled' "$TEST_TMPDIR/drawn" && fail "a measured page speaks of a model"
draws "#kernel=0&beside=2"
shows 'Beside each other'
[ "$(grep -o '<div class="panel">' "$TEST_TMPDIR/drawn" | wc -l)" -eq 2 ] || fail "not two panels"

# A launch without source lines is shown as a whole.
sed '/^"File Path"/,$d' "$3" >"$TEST_TMPDIR/raw.csv"
"$2" --from "$TEST_TMPDIR/raw.csv" --output "$page" >/dev/null || fail "no page of the raw page alone"
draws ""
shows 'no source lines: compile with -lineinfo'
shows 'The profile has no samples.'
exit $((failures > 0))
