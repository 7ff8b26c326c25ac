#!/bin/bash
# An x-ray page in a browser: it draws itself, with no error and no file beside it.
# usage: xray_browser_test.sh RUN CASE
set -u
for name in chromium chromium-browser google-chrome; do
    browser=$(command -v "$name") && break
done
if [ -z "$browser" ]; then
    echo "skipped: chromium is not installed (./setup.sh --dev)"
    exit 0
fi
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_REPORT SIMT_GPU
page=$TEST_TMPDIR/page.html
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# draws HASH: the page's elements as the browser has them, in the file dom.
draws() {
    "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --user-data-dir="$TEST_TMPDIR/profile" --enable-logging=stderr --virtual-time-budget=5000 \
        --dump-dom "file://$page$1" >"$TEST_TMPDIR/dom" 2>"$TEST_TMPDIR/err" </dev/null ||
        fail "the browser ended with $?: $(tail -5 "$TEST_TMPDIR/err")"
    grep 'CONSOLE' "$TEST_TMPDIR/err" && fail "the page has errors"
    # The data and the script do not count as drawn.
    sed -e '/<script/,/<\/script>/d' "$TEST_TMPDIR/dom" >"$TEST_TMPDIR/drawn"
    grep -oE '.{40}(NaN|undefined|Infinity).{20}' "$TEST_TMPDIR/drawn" && fail "a number is missing"
}

shows() {
    grep -qF -- "$1" "$TEST_TMPDIR/drawn" || fail "the page does not show: $1"
}

"$1" --xray="$page" --check=bounds "$2" leak >/dev/null 2>"$TEST_TMPDIR/err" ||
    fail "no page: $(cat "$TEST_TMPDIR/err")"
draws ""
shows '<h2 title="scale(int*, int const*, int, int, int)">scale</h2>'
shows 'common/simt/runtime/testdata/kernels.cu</h3>'
shows 'out[i] = in[i] * factor + offset;'
shows 'warp 0 of block 0: 32 lanes of 4 bytes each. '
shows '4 sectors, 4 would do.'
shows '1 block on 132 multiprocessors: 131 have nothing to do.'
[ "$(grep -o 'class="hit"' "$TEST_TMPDIR/drawn" | wc -l)" -ge 64 ] || fail "no lanes are drawn"
draws "#kernel=0&beside=0"
shows 'Beside each other'

# Another page's data, as the file chooser hands it over: both runs stand beside each other.
cat >>"$page" <<'EOF'
<script>
pages.push(readPage(document.documentElement.outerHTML, "earlier.html"));
fillChoices();
document.getElementById("beside").value = "1";
draw();
</script>
EOF
draws ""
shows '<th scope="col">scale (earlier.html)</th>'
[ "$(grep -o '<div class="panel">' "$TEST_TMPDIR/drawn" | wc -l)" -eq 2 ] || fail "not two panels"

# The test itself: an error of the page's script would be seen.
echo '<script>throw new Error("seen");</script>' >>"$page"
(failures=0 && draws "" >/dev/null && [ "$failures" -eq 0 ]) && fail "errors of the script go unseen"
exit $((failures > 0))
