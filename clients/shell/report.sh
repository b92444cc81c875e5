#!/bin/sh
# A report's lines, written to PostgreSQL by one holder at a time; what was cut short goes on at its next line.
# Needs curl and psql. docs/applications.md explains it.
set -eu

# A trap may run while a function's output is redirected: the last word goes to the first output all the same.
exec 3>&1
folder=$(mktemp -d)
fence=$(cat "$FENCEDLEASE_DIR/fence")

ask() {
    path=$1
    shift
    curl -sS --unix-socket "$FENCEDLEASE_SOCKET" "$@" "http://lease$path"
}

stop() {
    trap '' TERM
    echo "$2" >&3
    exit "$1"
}

# Ends the script when the lease is lost or given back, and when the sidecar is gone.
follow() {
    while read -r event; do
        case $event in
            *'"LOST"'* | *'"RELEASED"'* | *'"ending"'*) echo "$event" >"$folder/why"; break ;;
        esac
    done
    kill -TERM $$
}

mkfifo "$folder/events"
ask /v1/events -N >"$folder/events" &
events=$!
follow <"$folder/events" &
follower=$!
trap 'kill -KILL $follower $events 2>/dev/null || true; rm -rf "$folder"' EXIT
# SIGTERM comes at a loss too, and before a planned end.
trap 'stop 10 "cancelled: $(cat "$folder/why" 2>/dev/null || echo SIGTERM)"' TERM

sql() {
    psql -XqAt -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -v run="$REPORT_RUN" "$@" "$REPORT_DATABASE"
}

commit() {
    need="{\"fence\":$fence,\"needMs\":$REPORT_NEED_MS}"
    # 409 makes curl fail; without an answer nothing is written either.
    ask /v1/commit-check --fail-with-body -d "$need" >"$folder/verdict" || stop 11 "too late: $(cat "$folder/verdict")"
    sql -v resource="$FENCEDLEASE_RESOURCE" -v fence="$fence" -v holder="$FENCEDLEASE_HOLDING" -v line="$1" \
        >"$folder/answer" 2>&1 <<'SQL' && return
BEGIN;
SELECT fencedlease.use_fence(:'resource', :'fence', :'holder');
INSERT INTO report (run, line, fence) VALUES (:'run', :'line', :'fence') ON CONFLICT DO NOTHING;
COMMIT;
SQL
    if grep -q FL001 "$folder/answer"; then
        ask /v1/fence-rejected -d "{\"fence\":$fence,\"resourceKind\":\"postgresql\"}"
        stop 12 "refused: $(head -n 1 "$folder/answer")"
    fi
    stop 1 "$(cat "$folder/answer")"
}

line=${REPORT_FROM:-$(echo "SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = :'run';" | sql)}
while [ "$line" -le "$REPORT_LINES" ]; do
    # The work. In the background, since a shell takes no signal while it waits for a command in the foreground.
    sleep "$(printf '%d.%03d' $((REPORT_LINE_MS / 1000)) $((REPORT_LINE_MS % 1000)))" &
    wait $! || true
    commit "$line"
    line=$((line + 1))
done
stop 0 complete
