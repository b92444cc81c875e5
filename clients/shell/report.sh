#!/bin/sh
# A report's lines, written to PostgreSQL by one holder at a time; what was cut short goes on at its next line.
# Needs curl and psql. docs/applications.md explains it.
set -eu

# A trap may run while a function's output is redirected: the last word goes to the first output all the same.
exec 3>&1
folder=$(mktemp -d)
fence=$(cat "$FENCEDLEASE_DIR/fence")

# Milliseconds since the boot, from a clock with steps of 10 ms.
now() {
    read -r up _ </proc/uptime
    echo $((${up%.*} * 1000 + 1${up#*.}0 - 1000))
}

seconds() {
    printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# What is said to remain, in milliseconds.
remaining() {
    said=${1#*'"remainingMs":'}
    echo "${said%%[!0-9]*}"
}

ask() {
    path=$1
    shift
    curl -sS --max-time 5 --unix-socket "$FENCEDLEASE_SOCKET" "$@" "http://lease$path"
}

stop() {
    trap '' TERM
    echo "$2" >&3
    exit "$1"
}

# The next event, if it comes in so many milliseconds.
event_within() {
    [ "$1" -gt 0 ] && timeout "$(seconds "$1")" sh -c 'read -r event && printf "%s\n" "$event"'
}

# Ends the script when the lease is lost or given back, and when the sidecar is gone or silent for longer than remained.
follow() {
    asked=$1
    until=$((asked + 5000))
    while event=$(event_within $((until - $(now)))); do
        case $event in
            *'"LOST"'* | *'"RELEASED"'* | *'"ending"'*) echo "$event" >"$folder/why"; break ;;
            # The first is the answer to a question, however late it is.
            *'"remainingMs":'*) until=$((${asked:-$(now)} + $(remaining "$event"))); asked= ;;
        esac
    done
    [ -s "$folder/why" ] || echo "the sidecar is gone, or was silent for too long" >"$folder/why"
    kill -TERM $$
}

mkfifo "$folder/events"
asked=$(now)
# Not by `ask`, whose process would be one that waits for curl's.
curl -sSN --unix-socket "$FENCEDLEASE_SOCKET" http://lease/v1/events >"$folder/events" &
events=$!
follow "$asked" <"$folder/events" &
follower=$!
trap 'kill -KILL $follower $events 2>/dev/null || true; rm -rf "$folder"' EXIT
# SIGTERM comes at a loss too, and before a planned end.
trap 'stop 10 "cancelled: $(cat "$folder/why" 2>/dev/null || echo SIGTERM)"' TERM

# Ends with 124 if it takes more milliseconds than the first word says.
sql() {
    limit=$(seconds "$1")
    shift
    timeout "$limit" psql -XqAt -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -v run="$REPORT_RUN" "$@" "$REPORT_DATABASE"
}

commit() {
    asked=$(now)
    need="{\"fence\":$fence,\"needMs\":$REPORT_NEED_MS}"
    # 409 makes curl fail; without an answer nothing is written either.
    ask /v1/commit-check --fail-with-body -d "$need" >"$folder/verdict" || stop 11 "too late: $(cat "$folder/verdict")"
    # Counted from the question, however late the answer is.
    left=$((asked + $(remaining "$(cat "$folder/verdict")") - $(now) - 10))
    [ "$left" -gt 0 ] || stop 11 "too late: the answer came when nothing remained"
    sql "$left" -v resource="$FENCEDLEASE_RESOURCE" -v fence="$fence" -v holder="$FENCEDLEASE_HOLDING" -v line="$1" \
        >"$folder/answer" 2>&1 <<'SQL' && return
BEGIN;
SELECT fencedlease.use_fence(:'resource', :'fence', :'holder');
INSERT INTO report (run, line, fence) VALUES (:'run', :'line', :'fence') ON CONFLICT DO NOTHING;
COMMIT;
SQL
    code=$?
    if grep -q FL001 "$folder/answer"; then
        ask /v1/fence-rejected -d "{\"fence\":$fence,\"resourceKind\":\"postgresql\"}" ||
            echo "the refusal could not be reported" >&2
        stop 12 "refused: $(head -n 1 "$folder/answer")"
    fi
    [ "$code" -ne 124 ] || stop 13 "unknown: the database did not confirm in time"
    stop 1 "$(cat "$folder/answer")"
}

next_line() {
    code=0
    echo "SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = :'run';" | sql 5000 2>&1 || code=$?
    [ "$code" -ne 124 ] || echo "the database did not answer within 5 s"
    return "$code"
}

line=${REPORT_FROM:-$(next_line)} || stop 1 "$line"
while [ "$line" -le "$REPORT_LINES" ]; do
    # The work. In the background, since a shell takes no signal while it waits for a command in the foreground.
    sleep "$(seconds "$REPORT_LINE_MS")" &
    wait $! || true
    commit "$line"
    line=$((line + 1))
done
stop 0 complete
