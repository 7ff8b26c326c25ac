# Helpers for tests that look at a page in headless Chromium; such a test sources this file. Without
# a browser the test is left out.
# shellcheck shell=bash
for name in chromium chromium-browser google-chrome; do
    browser=$(command -v "$name") && break
done
if [ -z "$browser" ]; then
    echo "skipped: chromium is not installed (./setup.sh --dev)"
    exit 0
fi
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
