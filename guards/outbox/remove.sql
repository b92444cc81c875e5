-- Takes the outbox out of a PostgreSQL database, with every message that was not published yet.
-- psql -v ON_ERROR_STOP=1 -f remove.sql. To run it again changes nothing.

DROP SCHEMA IF EXISTS fencedlease_outbox CASCADE;
