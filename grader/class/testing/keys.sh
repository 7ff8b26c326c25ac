# shellcheck shell=bash
# Presses keys in headless Chromium, over its debugging pipe; a test sources this file after
# //common/simt/page:browser.sh, which finds the browser.

# browse URL: opens a page. What the browser says is in the file events, a message a line.
browse() {
    rm -f "$TEST_TMPDIR"/to_browser "$TEST_TMPDIR"/from_browser
    mkfifo "$TEST_TMPDIR"/to_browser "$TEST_TMPDIR"/from_browser
    # shellcheck disable=SC2154 # of browser.sh
    "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --user-data-dir="$TEST_TMPDIR/profile" --hide-scrollbars --remote-debugging-pipe about:blank \
        3<"$TEST_TMPDIR"/to_browser 4>"$TEST_TMPDIR"/from_browser 2>"$TEST_TMPDIR/err" </dev/null &
    browser_process=$!
    exec 7>"$TEST_TMPDIR"/to_browser 8<"$TEST_TMPDIR"/from_browser
    session=""
    local target
    target=$(order Target.createTarget '{"url":"about:blank"}')
    session=$(order Target.attachToTarget "{\"targetId\":\"$(text_of targetId "$target")\",\"flatten\":true}")
    session=$(text_of sessionId "$session")
    order Page.enable '{}' >/dev/null
    order Runtime.enable '{}' >/dev/null
    go_to "$1"
}

close_browser() {
    exec 7>&- 8<&-
    kill "$browser_process" 2>/dev/null
    wait "$browser_process" 2>/dev/null
}

# order METHOD PARAMETERS: prints the answer.
order() {
    local message number=$((RANDOM * 32768 + RANDOM + 1))
    printf '{"id":%d,"method":"%s","params":%s%s}\0' "$number" "$1" "$2" "${session:+,\"sessionId\":\"$session\"}" >&7
    while IFS= read -r -d '' -t 60 -u 8 message; do
        case $message in
        "{\"id\":$number,"*)
            printf '%s\n' "$message"
            return
            ;;
        *) printf '%s\n' "$message" >>"$TEST_TMPDIR/events" ;;
        esac
    done
    fail "the browser does not answer to $1"
    exit 1
}

# text_of KEY ANSWER: the text or number that stands at its first such key.
text_of() {
    local text=${2#*"\"$1\":"}
    case $text in
    \"*)
        text=${text#\"}
        text=${text//\\\"/$'\x01'} # quotes in it
        text=${text%%\"*}
        text=${text//$'\x01'/\"}
        text=${text//\\u003C/<}
        ;;
    *) text=${text%%[,\}]*} ;;
    esac
    printf '%s\n' "$text"
}

# value EXPRESSION: what the page has, as text.
value() {
    local text=${1//\\/\\\\}
    text=$(order Runtime.evaluate "{\"returnByValue\":true,\"expression\":\"${text//\"/\\\"}\"}")
    case $text in
    *'"exceptionDetails":'*) echo "exception" ;;
    *) text_of value "$text" ;;
    esac
}

# has EXPRESSION WANT: within ten seconds.
has() {
    local got="" tries
    for tries in {1..50}; do
        got=$(value "$1")
        [ "$got" = "$2" ] && return
        [ "$tries" -gt 40 ] || sleep 0.2
    done
    fail "$1 is '$got', want '$2'"
}

go_to() {
    order Page.navigate "{\"url\":\"$1\"}" >/dev/null
    has "document.readyState + location.href" "complete$1"
}

# press KEY...: Tab, Enter, ArrowDown, Shift+Tab, or a letter.
press() {
    local key
    for key in "$@"; do
        case $key in
        Tab) press_code Tab 9 "" 0 ;;
        Shift+Tab) press_code Tab 9 "" 8 ;;
        Enter) press_code Enter 13 '\r' 0 ;;
        ArrowDown) press_code ArrowDown 40 "" 0 ;;
        ArrowRight) press_code ArrowRight 39 "" 0 ;;
        *) press_code "$key" 0 "$key" 0 ;;
        esac
    done
}

# press_code KEY CODE TEXT MODIFIERS
press_code() {
    order Input.dispatchKeyEvent "{\"type\":\"keyDown\",\"key\":\"$1\",\"code\":\"$1\",\"windowsVirtualKeyCode\":$2,\"modifiers\":$4${3:+,\"text\":\"$3\"}}" >/dev/null
    order Input.dispatchKeyEvent "{\"type\":\"keyUp\",\"key\":\"$1\",\"code\":\"$1\",\"windowsVirtualKeyCode\":$2,\"modifiers\":$4}" >/dev/null
}

# window WIDTH HEIGHT SCHEME: light or dark
window() {
    order Emulation.setDeviceMetricsOverride "{\"width\":$1,\"height\":$2,\"deviceScaleFactor\":1,\"mobile\":false}" >/dev/null
    order Emulation.setEmulatedMedia "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"$3\"}]}" >/dev/null
}

# picture FILE: what the window shows.
picture() {
    text_of data "$(order Page.captureScreenshot '{"format":"png"}')" | base64 -d >"$1"
}
