#!/bin/bash
# The program from outside, with a script in the place of `ncu`.
# usage: xray_test.sh HELPERS XRAY EXPORT
set -u
# shellcheck source=common/testing/programs.sh
. "$1"
xray=$PWD/$2
export=$PWD/$3
cd "$TEST_TMPDIR" && : >in && mkdir -p bin || exit 1
unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY
export CUDA_HOME=$PWD/none

accepts "$xray" --from "$export" --output page.html
says page.html out
says '"measured":"Nsight Compute"' page.html
says 'NVIDIA H100 80GB HBM3' page.html
says '"kernel":"column(float *, const float *)"' page.html
grep -qE '(src|href)="[^d]' page.html && fail "the page loads something"

# Without the sources beside it, the page has the export's own lines.
says 'sum += tile[warp][lane * 32 + row];' page.html

# A source that may be read, and one that an export must not have read.
sed 's|/[^"]*/execroot/[a-z]*/common/simt/nsight/testdata/known.cu|secret.txt|' "$export" >other.csv
echo "not for the page" >secret.txt
accepts "$xray" -f other.csv -o other.html
grep -q "not for the page" other.html && fail "the page shows a file that is no source"

refuses "--from names what" "$xray"
refuses "no/such.csv" "$xray" --from no/such.csv
refuses "none/page.html" "$xray" --from "$export" --output none/page.html
echo hello >t.csv
refuses "t.csv:1: Nsight Compute's raw page must come first" "$xray" --from t.csv
head -c 20 /dev/zero >zeros.csv
refuses "zeros.csv: not a text" "$xray" --from zeros.csv
refuses '`ncu` is not on PATH' env PATH=/no/such "$xray" --from report.ncu-rep

# A report, by ncu.
cat >bin/ncu <<END
#!/bin/bash
echo "\$*" >>$PWD/calls
[ "\$2" = report.ncu-rep ] || { echo "==ERROR== Failed to load report file '\$2'."; exit 1; }
case "\$*" in
*"--page raw"*) sed '/^"File Path"/,\$d' $export ;;
*"--page source"*) sed -n '/^"File Path"/,\$p' $export ;;
esac
END
chmod +x bin/ncu
PATH=$PWD/bin:$PATH
accepts "$xray" --from report.ncu-rep --output by_ncu.html
cmp page.html by_ncu.html || fail "not the page of the same export"
says "--import report.ncu-rep --page source --csv --print-source cuda,sass" calls
refuses "broken.ncu-rep: ncu: Failed to load report file 'broken.ncu-rep'." "$xray" --from broken.ncu-rep
[ "$failures" -eq 0 ]
