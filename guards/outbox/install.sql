-- An outbox in PostgreSQL whose messages carry the fence. After guards/postgresql/install.sql, by its owner:
-- psql -v ON_ERROR_STOP=1 -f install.sql. To run it again changes nothing.
--
--   GRANT USAGE ON SCHEMA fencedlease_outbox TO app;                  -- the application's role, allow_writer included
--   GRANT EXECUTE ON FUNCTION fencedlease_outbox.send TO app;
--
--   BEGIN;
--   SELECT fencedlease.use_fence('shop/report', 42, 'holding');
--   UPDATE ledger ...;
--   SELECT fencedlease_outbox.send('shop/report', '{"total": 7}');    -- the last statement: others wait from here on
--   COMMIT;
--
-- A former holder's message is refused with its write (FL001), one without a fence too (FL002). relay.sh publishes.

BEGIN;

CREATE SCHEMA IF NOT EXISTS fencedlease_outbox;

-- What was committed, for each resource in the order of the commits. Delete what every consumer has.
CREATE TABLE IF NOT EXISTS fencedlease_outbox.messages (
    resource text NOT NULL,
    position bigint NOT NULL CHECK (position > 0),
    fence bigint NOT NULL,
    holder text NOT NULL,
    payload text NOT NULL,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (resource, position)
);

-- The last position of each resource. Its row is locked until the commit, which a sequence is not: without that a
-- lower position could be committed after a relay has passed it.
CREATE TABLE IF NOT EXISTS fencedlease_outbox.positions (
    resource text PRIMARY KEY,
    position bigint NOT NULL
);

-- Writes a message under the fence of this transaction, or of its session, and gives its position.
CREATE OR REPLACE FUNCTION fencedlease_outbox.send(p_resource text, p_payload text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken bigint;
BEGIN
    IF coalesce(current_setting(fencedlease.mark_of(p_resource), true), '') = '' THEN
        PERFORM fencedlease.admit_session(p_resource);
    END IF;
    INSERT INTO fencedlease_outbox.positions AS it VALUES (p_resource, 1)
        ON CONFLICT (resource) DO UPDATE SET position = it.position + 1 RETURNING it.position INTO taken;
    -- The fence's row is locked by this transaction, so it is this holder's.
    INSERT INTO fencedlease_outbox.messages (resource, position, fence, holder, payload)
        SELECT p_resource, taken, fence, holder, p_payload FROM fencedlease.fences WHERE resource = p_resource;
    RETURN taken;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fencedlease_outbox FROM PUBLIC;

COMMIT;
