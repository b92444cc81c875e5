#!/bin/sh
# Publishes the messages of one resource from the outbox to the Redis stream outbox:RESOURCE, in their order, and ends
# when there are no more. Run it again and again; several at once do no harm. Needs psql, redis-cli and base64.
#
#   OUTBOX_DATABASE=postgresql://relay@db/app OUTBOX_RESOURCE=shop/report OUTBOX_REDIS=redis://streams:6379 relay.sh
#
# A message's id in the stream is its position, and Redis takes no id that is not above the last one. So what another
# relay has published is not published twice, a relay that was stalled publishes nothing late, and there is no mark of
# what was sent: the stream is the mark. If Redis loses the end of the stream, it is published again.
set -eu

stream=outbox:$OUTBOX_RESOURCE
broker() { redis-cli -e -u "$OUTBOX_REDIS" "$@"; }

# The position of the last message that was ever in the stream.
published() {
    if [ "$(broker EXISTS "$stream")" = 0 ]; then
        echo 0
    else
        broker XINFO STREAM "$stream" | sed -n '/^last-generated-id$/{n;s/-.*//;p;}'
    fi
}

# position|fence|holder|payload, a line each
messages_after() {
    psql -XqAt -v ON_ERROR_STOP=1 -v resource="$OUTBOX_RESOURCE" -v last="$1" "$OUTBOX_DATABASE" <<'SQL'
SELECT position, fence, holder, translate(encode(convert_to(payload, 'UTF8'), 'base64'), E'\n', '')
FROM fencedlease_outbox.messages WHERE resource = :'resource' AND position > :'last' ORDER BY position LIMIT 100;
SQL
}

# Nothing is published before it is committed: an outbox that is behind the stream was put back to an earlier state.
fail_if_behind() {
    position=$(psql -XqAt -v ON_ERROR_STOP=1 -v resource="$OUTBOX_RESOURCE" "$OUTBOX_DATABASE" <<'SQL'
SELECT coalesce(max(position), 0) FROM fencedlease_outbox.positions WHERE resource = :'resource';
SQL
    )
    if [ "$position" -lt "$1" ]; then
        echo "relay.sh: the stream $stream is at position $1, and the outbox of $OUTBOX_RESOURCE at $position: the" \
            "database is older than what was published (restored, or another one). What is written now gets positions" \
            "that the stream has passed, and would never be published. Stop the writers, and let the outbox number on" \
            "from $1 as docs/messages.md says under \"After a restore\"" >&2
        exit 1
    fi
}

publish() {
    while IFS='|' read -r position fence holder payload; do
        said=$(printf %s "$payload" | base64 -d | broker -x XADD "$stream" "$position-0" \
            resource "$OUTBOX_RESOURCE" fence "$fence" holder "$holder" payload 2>&1) && continue
        case $said in
            *'equal or smaller'*) ;; # another relay was faster
            *) echo "relay.sh: position $position: $said" >&2 ;;
        esac
        return 1
    done
}

before=
while :; do
    last=$(published)
    fail_if_behind "$last"
    messages=$(messages_after "$last")
    [ -n "$messages" ] || exit 0
    if [ "$last" = "$before" ]; then
        echo "relay.sh: nothing could be published after position $last; what was said stands above" >&2
        exit 1
    fi
    before=$last
    # After a failure: on from where the stream is now.
    printf '%s\n' "$messages" | publish || true
done
