-- FencedLease's fence check for PostgreSQL 14 or newer. Run it as the owner of the protected tables, a member of the
-- owner's role, or a superuser: whoever runs it is who calls protect. To run it again changes nothing and
-- forgets no fence: psql -v ON_ERROR_STOP=1 -f install.sql
--
--   SELECT fencedlease.protect('public.ledger', 'shop/report');    -- from now on a write needs a fence
--   SELECT fencedlease.allow_writer('app');                        -- the role that the application uses
--
--   BEGIN;
--   SELECT fencedlease.use_fence('shop/report', 42, 'holding');    -- FENCEDLEASE_RESOURCE, _FENCE, _HOLDING
--   UPDATE ledger ...;                                             -- as it always was
--   COMMIT;
--
-- SQLSTATE  FL001 refused: a newer fence, or another holder with this one, was here
--           FL002 a write without a fence
--           FL003 a fence, holder or resource that cannot be one
--           FL004 a resource under which nothing is protected

BEGIN;

CREATE SCHEMA IF NOT EXISTS fencedlease;

-- The highest fence that was let through, for each resource. 0: none yet.
CREATE TABLE IF NOT EXISTS fencedlease.fences (
    resource text PRIMARY KEY,
    fence bigint NOT NULL CHECK (fence BETWEEN 0 AND 999999999999999),
    holder text NOT NULL,
    raised_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- The setting that says, until the end of the transaction, that a resource's fence was compared and its row is
-- locked. In hexadecimal, since a setting's name may not have the characters of a resource.
CREATE OR REPLACE FUNCTION fencedlease.mark_of(resource text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$ SELECT 'fencedlease.checked_' || encode(convert_to(resource, 'UTF8'), 'hex') $$;

CREATE OR REPLACE FUNCTION fencedlease.fail_unless_valid(resource text, fence text, holder text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF fence IS NULL OR fence !~ '^[1-9][0-9]{0,14}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'FL003',
            MESSAGE = format('fence %s is none: a fence is a number from 1 to 999999999999999',
                coalesce(quote_literal(left(fence, 40)), 'NULL')),
            HINT = 'Pass what FENCEDLEASE_FENCE or the file fence says. If it is empty, this process holds no lease.';
    END IF;
    IF holder IS NULL OR holder !~ '^[A-Za-z0-9._-]{1,63}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'FL003',
            MESSAGE = format('holder %s is none: a holder is 1 to 63 letters, digits, ".", "_" or "-"',
                coalesce(quote_literal(left(holder, 80)), 'NULL')),
            HINT = 'Pass what FENCEDLEASE_HOLDING says.';
    END IF;
    IF resource IS NULL OR resource !~ '^[a-z0-9.-]{1,63}/[a-z0-9.-]{1,253}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'FL003',
            MESSAGE = format('resource %s is none: a resource is namespace/name',
                coalesce(quote_literal(left(resource, 330)), 'NULL')),
            HINT = 'Pass what FENCEDLEASE_RESOURCE says.';
    END IF;
END
$$;

-- Compares, raises, and keeps the row locked until the transaction ends: shared, so that one holder's
-- transactions run side by side; a newer holder's raise waits for them and then shuts the door.
CREATE OR REPLACE FUNCTION fencedlease.admit(p_resource text, p_fence bigint, p_holder text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    met fencedlease.fences;
BEGIN
    -- What was accepted must survive a crash: this commit may not be an asynchronous one.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- Raising before locking: a shared lock that many try to raise at once would be a deadlock.
    UPDATE fencedlease.fences SET fence = p_fence, holder = p_holder, raised_at = clock_timestamp()
        WHERE resource = p_resource AND fence < p_fence;
    SELECT * INTO met FROM fencedlease.fences WHERE resource = p_resource FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'FL004',
            MESSAGE = format('nothing is protected under the resource %s', p_resource),
            HINT = 'Compare the name with the resources in fencedlease.fences, or call fencedlease.protect first.';
    END IF;
    IF met.fence IS DISTINCT FROM p_fence OR met.holder IS DISTINCT FROM p_holder THEN
        RAISE EXCEPTION USING ERRCODE = 'FL001',
            MESSAGE = format('fence %s of holder %s is refused for %s: fence %s of holder %s was here',
                p_fence, p_holder, p_resource, met.fence, met.holder),
            HINT = 'The lease is somebody else''s now. Roll back, stop working and do not try again.';
    END IF;
    PERFORM set_config(fencedlease.mark_of(p_resource), '1', true);
END
$$;

-- Tells this transaction its fence. Alone, outside a transaction, it raises the stored fence and that is all:
-- what a new holder does first, so that the former one's late writes are refused from then on.
CREATE OR REPLACE FUNCTION fencedlease.use_fence(resource text, fence text, holder text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fencedlease.fail_unless_valid(resource, fence, holder);
    PERFORM fencedlease.admit(resource, fence::bigint, holder);
END
$$;

CREATE OR REPLACE FUNCTION fencedlease.use_fence(resource text, fence bigint, holder text) RETURNS void
LANGUAGE sql
AS $$ SELECT fencedlease.use_fence(resource, fence::text, holder) $$;

-- Tells this session its fence, for one resource, until it ends, is told another, or is reset (DISCARD ALL). It
-- counts only while application_name is the holder: a pooled connection's next user has another name.
CREATE OR REPLACE FUNCTION fencedlease.use_fence_for_session(resource text, fence text, holder text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM fencedlease.use_fence(resource, fence, holder);
    PERFORM fencedlease.fail_unless_bound(holder);
    PERFORM set_config('fencedlease.session', concat_ws(':', resource, fence, holder), false);
END
$$;

CREATE OR REPLACE FUNCTION fencedlease.use_fence_for_session(resource text, fence bigint, holder text)
RETURNS void
LANGUAGE sql
AS $$ SELECT fencedlease.use_fence_for_session(resource, fence::text, holder) $$;

CREATE OR REPLACE FUNCTION fencedlease.fail_unless_bound(holder text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('application_name') <> holder THEN
        RAISE EXCEPTION USING ERRCODE = 'FL002',
            MESSAGE = format('the session''s fence is of holder %s, but application_name is %s',
                holder, quote_literal(current_setting('application_name'))),
            HINT = 'Connect with application_name = the holder (PGAPPNAME=$FENCEDLEASE_HOLDING), '
                'or call fencedlease.use_fence in each transaction.';
    END IF;
END
$$;

-- The transaction's first write where only the session was told a fence.
CREATE OR REPLACE FUNCTION fencedlease.admit_session(resource text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    told text[] := string_to_array(current_setting('fencedlease.session', true), ':');
BEGIN
    IF coalesce(told[1], '') = '' THEN
        RAISE EXCEPTION USING ERRCODE = 'FL002',
            MESSAGE = format('a write to what %s protects, without a fence', resource),
            HINT = 'In the same transaction, call fencedlease.use_fence(resource, fence, holder) before the write.';
    END IF;
    IF told[1] <> resource THEN
        RAISE EXCEPTION USING ERRCODE = 'FL002',
            MESSAGE = format('a write to what %s protects, in a session with a fence for %s', resource, told[1]),
            HINT = 'A session can be told one resource''s fence; for others call fencedlease.use_fence in the '
                'transaction.';
    END IF;
    PERFORM fencedlease.fail_unless_valid(told[1], told[2], told[3]);
    PERFORM fencedlease.fail_unless_bound(told[3]);
    PERFORM fencedlease.admit(told[1], told[2]::bigint, told[3]);
END
$$;

-- Every name with its schema: in a foreign key's cascade it runs with the rights of the child table's owner and the
-- search_path of whoever deletes. SET search_path would do the same, but costs each row of a partitioned table.
CREATE OR REPLACE FUNCTION fencedlease.require_fence() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF coalesce(pg_catalog.current_setting(TG_ARGV[1], true), '') OPERATOR(pg_catalog.=) '' THEN
        PERFORM fencedlease.admit_session(TG_ARGV[0]);
    END IF;
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$$;

-- From now on every INSERT, UPDATE, DELETE, MERGE, COPY and TRUNCATE of this table needs the resource's fence.
-- A partitioned table's present and future partitions too; TRUNCATE of a partition by its own name only for
-- those that are there now (protect again after adding one). So, too, for a table that has become a partition or an
-- inheritance child of one that is not protected.
CREATE OR REPLACE FUNCTION fencedlease.protect(target regclass, resource text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    kind "char" := (SELECT relkind FROM pg_class WHERE oid = target);
    other text := (SELECT p.resource FROM fencedlease.protected_tables p
        WHERE p.target = protect.target AND p.resource <> protect.resource LIMIT 1);
    arguments text := format('(%L, %L)', resource, fencedlease.mark_of(resource));
    member regclass;
BEGIN
    PERFORM fencedlease.fail_unless_valid(resource, '1', 'none');
    IF kind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('%s is no table: only tables can be protected', target),
            HINT = 'Protect the tables beneath a view, and a foreign table where it lies.';
    END IF;
    IF other IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'FL003',
            MESSAGE = format('%s is protected by %s already', target, other),
            HINT = format('To change that, SELECT fencedlease.unprotect(%L) first.', target);
    END IF;
    INSERT INTO fencedlease.fences (resource, fence, holder) VALUES (resource, 0, '')
        ON CONFLICT ON CONSTRAINT fences_pkey DO NOTHING;
    -- A statement that names a parent fires its own statement triggers and not its children's.
    IF kind = 'r' AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = target) THEN
        EXECUTE format('CREATE OR REPLACE TRIGGER fencedlease_write BEFORE INSERT OR UPDATE OR DELETE ON %s
            FOR EACH STATEMENT EXECUTE FUNCTION fencedlease.require_fence%s', target, arguments);
    ELSE
        -- Only row triggers are handed down to partitions, those made later included.
        EXECUTE format('CREATE OR REPLACE TRIGGER fencedlease_write BEFORE INSERT OR UPDATE OR DELETE ON %s
            FOR EACH ROW EXECUTE FUNCTION fencedlease.require_fence%s', target, arguments);
    END IF;
    FOR member IN SELECT target UNION SELECT relid FROM pg_partition_tree(target) LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER fencedlease_truncate BEFORE TRUNCATE ON %s
            FOR EACH STATEMENT EXECUTE FUNCTION fencedlease.require_fence%s', member, arguments);
    END LOOP;
END
$$;

-- Takes the triggers away again. The fence is remembered.
CREATE OR REPLACE FUNCTION fencedlease.unprotect(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    member regclass;
BEGIN
    EXECUTE format('DROP TRIGGER IF EXISTS fencedlease_write ON %s', target);
    FOR member IN SELECT target UNION SELECT relid FROM pg_partition_tree(target) LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS fencedlease_truncate ON %s', member);
    END LOOP;
END
$$;

-- Lets a role use fences and read which ones were met. It can neither lower nor forget one.
CREATE OR REPLACE FUNCTION fencedlease.allow_writer(writer regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA fencedlease TO %s', writer);
    EXECUTE format('GRANT SELECT ON fencedlease.fences, fencedlease.protected_tables TO %s', writer);
    EXECUTE format('GRANT EXECUTE ON FUNCTION fencedlease.use_fence(text, text, text),
        fencedlease.use_fence(text, bigint, text), fencedlease.use_fence_for_session(text, text, text),
        fencedlease.use_fence_for_session(text, bigint, text), fencedlease.admit(text, bigint, text),
        fencedlease.admit_session(text), fencedlease.fail_unless_valid(text, text, text),
        fencedlease.fail_unless_bound(text) TO %s', writer);
END
$$;

CREATE OR REPLACE VIEW fencedlease.protected_tables AS
    SELECT t.tgrelid::regclass AS target,
        convert_from(substring(t.tgargs FROM 1 FOR position('\000'::bytea IN t.tgargs) - 1), 'UTF8') AS resource,
        t.tgname AS trigger, t.tgenabled <> 'D' AS enabled
    FROM pg_catalog.pg_trigger t
    WHERE t.tgname IN ('fencedlease_write', 'fencedlease_truncate') AND NOT t.tgisinternal;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fencedlease FROM PUBLIC;

COMMIT;
