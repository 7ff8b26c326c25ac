#!/usr/bin/env bash
# made_up_output.sh FOLDER COUNT [SECONDS]: makes an output folder as grade_class does, with COUNT
# tasks, for tests of a back end. Its grade_submission keeps the contract of the real one: a lock,
# result.json that appears once, one line in `graded` for each time that it graded to the end, and in
# `attempts` for each begin. tasks/ID/does holds its words:
#   sleep S      takes S seconds (SECONDS without it)
#   held         works until FOLDER/go is there
#   code N       ends with N and leaves no result
#   once WORD    does WORD (code75, kill) at the first attempt only
# FOLDER/bad holds the name of a node that fails every task, as one without a compiler does.
set -eu
folder=$1
mkdir -p "$folder/kit/bin" "$folder/tasks"
for ((id = 1; id <= $2; id++)); do
    mkdir -p "$folder/tasks/$(printf %06d "$id")"
done
cat >"$folder/kit/bin/grade_submission" <<END
#!/bin/bash
task=\$1/tasks/\$2
seconds=${3:-0}
END
cat >>"$folder/kit/bin/grade_submission" <<'END'
code=0
work() { sleep "$seconds"; }
held() { until [ -e "$output/go" ]; do sleep 0.1; done; }
does=work
output=$1
echo "grading on ${SLURMD_NODENAME:-here}"
exec 9>"$task/lock"
flock -n 9 || exit 76
[ -e "$task/result.json" ] && exit 0
echo "$(date +%s) ${SLURMD_NODENAME:-here} $$" >>"$task/attempts"
begins=$(wc -l <"$task/attempts")
[ "$(cat "$1/bad" 2>/dev/null)" != "${SLURMD_NODENAME:-here}" ] || exit 75
while read -r word value; do
    case "$word" in
    sleep) seconds=$value ;;
    held) does=held ;;
    code) code=$value ;;
    once) [ "$begins" -eq 1 ] && case "$value" in
        code75) exit 75 ;;
        kill) kill -KILL $$ ;;
        esac ;;
    esac
done < <(cat "$task/does" 2>/dev/null)
trap 'kill "$child"; exit 75' TERM
"$does" 9>&- &
child=$!
wait "$child" || exit 75
[ "$code" -eq 0 ] || exit "$code"
echo "{\"id\":\"$2\"}" >"$task/result.part.$$"
ln "$task/result.part.$$" "$task/result.json" && echo graded >>"$task/graded"
rm -f "$task/result.part.$$"
END
chmod +x "$folder/kit/bin/grade_submission"
