#!/bin/bash
# An x-ray page in a browser: it draws itself, with no error and no file beside it.
# usage: xray_browser_test.sh RUN CASE HELPERS
set -u
# shellcheck source=common/simt/page/browser.sh
. "$3"
unset BUILD_WORKING_DIRECTORY LD_PRELOAD SIMT_REPORT SIMT_GPU

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
