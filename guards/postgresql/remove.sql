-- Takes FencedLease's fence check out of a PostgreSQL database: triggers, functions, and the memory of fences.
-- psql -v ON_ERROR_STOP=1 -f remove.sql. To run it again changes nothing.
--
-- Afterwards nothing refuses a late write. Whoever installs it again should raise the fence at once
-- (SELECT fencedlease.use_fence(...) by the holder): until then a former holder's fence would pass.

DROP SCHEMA IF EXISTS fencedlease CASCADE;
