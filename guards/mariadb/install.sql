-- FencedLease's fence check for MariaDB 10.6 or newer (InnoDB tables). Run it as an administrator:
-- mariadb < install.sql. To run it again changes nothing and forgets no fence.
--
--   CALL fencedlease.protect('shop', 'ledger', 'shop/report');             -- from now on a write needs a fence
--   GRANT EXECUTE ON PROCEDURE fencedlease.use_fence TO app;               -- the user of the application
--   GRANT SELECT ON fencedlease.fences TO app;
--
--   CALL fencedlease.use_fence('shop/report', 42, 'holding');   -- FENCEDLEASE_RESOURCE, _FENCE, _HOLDING; once
--   UPDATE ledger ...;                                          -- as it always was
--
-- SQLSTATE  45F01 (error 45001) refused: a newer fence, or another holder with this one, was here
--           45F02 (error 45002) a write without a fence
--           45F03 (error 45003) a fence, holder, resource or table that cannot be one
--           45F04 (error 45004) a resource under which nothing is protected
--           45F05 (error 45005) the server would forget fences in a crash

CREATE DATABASE IF NOT EXISTS fencedlease CHARACTER SET utf8mb4;
USE fencedlease;
SET @fencedlease_sql_mode = @@sql_mode, sql_mode = 'STRICT_ALL_TABLES';

-- The highest fence that was let through, for each resource. 0: none yet.
CREATE TABLE IF NOT EXISTS fences (
    resource VARCHAR(317) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
    fence BIGINT NOT NULL CHECK (fence BETWEEN 0 AND 999999999999999),
    holder VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    raised_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)
) ENGINE = InnoDB;

DELIMITER //

CREATE OR REPLACE PROCEDURE fail_unless_valid(resource TEXT, fence TEXT, holder TEXT)
SQL SECURITY INVOKER
BEGIN
    DECLARE message TEXT;
    -- \z and not $: that one lets a newline at the end pass.
    IF fence IS NULL OR fence NOT REGEXP '^[1-9][0-9]{0,14}\\z' THEN
        SET message = CONCAT('fence ', COALESCE(QUOTE(LEFT(fence, 40)), 'NULL'),
            ' is none: pass what FENCEDLEASE_FENCE says, a number from 1 to 999999999999999');
        SIGNAL SQLSTATE '45F03' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = message;
    END IF;
    IF holder IS NULL OR holder NOT REGEXP '^[A-Za-z0-9._-]{1,63}\\z' THEN
        SET message = CONCAT('holder ', COALESCE(QUOTE(LEFT(holder, 80)), 'NULL'),
            ' is none: pass what FENCEDLEASE_HOLDING says, 1 to 63 letters, digits, ".", "_" or "-"');
        SIGNAL SQLSTATE '45F03' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = message;
    END IF;
    IF resource IS NULL OR BINARY resource NOT REGEXP '^[a-z0-9.-]{1,63}/[a-z0-9.-]{1,253}\\z' THEN
        SET message = CONCAT('resource ', COALESCE(QUOTE(LEFT(resource, 320)), 'NULL'),
            ' is none: pass what FENCEDLEASE_RESOURCE says, namespace/name');
        SIGNAL SQLSTATE '45F03' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = message;
    END IF;
END//

-- Compares, raises, and keeps the row locked until the transaction ends: shared, so that one holder's
-- transactions run side by side; a newer holder's raise waits for them and then shuts the door. A locking read
-- sees what is committed now, whatever snapshot the transaction has.
CREATE OR REPLACE PROCEDURE admit(
    p_resource VARCHAR(317) CHARACTER SET ascii COLLATE ascii_bin,
    p_fence BIGINT,
    p_holder VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
    DECLARE met_fence BIGINT;
    DECLARE met_holder VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE message TEXT;
    -- A comparison with NULL would refuse nobody.
    IF p_fence IS NULL OR p_holder IS NULL THEN
        SET message = CONCAT('a write to what ', p_resource, ' protects, with no fence or no holder: ',
            'CALL fencedlease.use_fence(resource, fence, holder) before it');
        SIGNAL SQLSTATE '45F02' SET MYSQL_ERRNO = 45002, MESSAGE_TEXT = message;
    END IF;
    SELECT fence, holder INTO met_fence, met_holder FROM fencedlease.fences WHERE resource = p_resource
        LOCK IN SHARE MODE;
    IF met_fence IS NULL THEN
        SET message = CONCAT('nothing is protected under the resource ', p_resource,
            ': compare with fencedlease.fences, or CALL fencedlease.protect first');
        SIGNAL SQLSTATE '45F04' SET MYSQL_ERRNO = 45004, MESSAGE_TEXT = message;
    END IF;
    IF met_fence > p_fence OR (met_fence = p_fence AND met_holder <> p_holder) THEN
        SET message = CONCAT('fence ', p_fence, ' of holder ', p_holder, ' is refused for ', p_resource,
            ': fence ', met_fence, ' of holder ', met_holder, ' was here. Roll back and stop working');
        SIGNAL SQLSTATE '45F01' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = message;
    END IF;
    IF met_fence < p_fence THEN
        UPDATE fencedlease.fences SET fence = p_fence, holder = p_holder WHERE resource = p_resource;
    END IF;
END//

-- Tells this session its fence, for one resource, until it ends, is told another, is reset (as pools do), or
-- forgets it. It raises the stored fence at once: what a new holder does first, so that the former one's late
-- writes are refused from then on.
CREATE OR REPLACE PROCEDURE use_fence(p_resource TEXT, p_fence TEXT, p_holder TEXT)
BEGIN
    DECLARE seen BIGINT;
    SET @fencedlease_resource = NULL, @fencedlease_fence = NULL, @fencedlease_holder = NULL;
    IF @@GLOBAL.innodb_flush_log_at_trx_commit <> 1 THEN
        SIGNAL SQLSTATE '45F05' SET MYSQL_ERRNO = 45005, MESSAGE_TEXT =
            'a crash would forget fences: set innodb_flush_log_at_trx_commit = 1';
    END IF;
    CALL fencedlease.fail_unless_valid(p_resource, p_fence, p_holder);
    -- Raising before locking: a shared lock that many try to raise at once would be a deadlock.
    SELECT fence INTO seen FROM fencedlease.fences WHERE resource = p_resource;
    IF seen < CAST(p_fence AS SIGNED) THEN
        UPDATE fencedlease.fences SET fence = CAST(p_fence AS SIGNED), holder = p_holder
            WHERE resource = p_resource AND fence < CAST(p_fence AS SIGNED);
    END IF;
    CALL fencedlease.admit(p_resource, p_fence, p_holder);
    SET @fencedlease_resource = p_resource, @fencedlease_fence = CAST(p_fence AS SIGNED),
        @fencedlease_holder = p_holder;
END//

-- Before a connection goes back to a pool that does not reset it.
CREATE OR REPLACE PROCEDURE forget_fence()
SQL SECURITY INVOKER
BEGIN
    SET @fencedlease_resource = NULL, @fencedlease_fence = NULL, @fencedlease_holder = NULL;
END//

-- What the triggers call, for each row.
CREATE OR REPLACE PROCEDURE require_fence(p_resource VARCHAR(317) CHARACTER SET ascii COLLATE ascii_bin)
BEGIN
    DECLARE told VARCHAR(317) CHARACTER SET ascii COLLATE ascii_bin DEFAULT @fencedlease_resource;
    DECLARE message TEXT;
    IF told IS NULL OR told <> p_resource THEN
        SET message = CONCAT('a write to what ', p_resource, ' protects, ',
            COALESCE(CONCAT('in a session with a fence for ', told), 'without a fence'),
            ': CALL fencedlease.use_fence(resource, fence, holder) before it');
        SIGNAL SQLSTATE '45F02' SET MYSQL_ERRNO = 45002, MESSAGE_TEXT = message;
    END IF;
    CALL fencedlease.admit(told, @fencedlease_fence, @fencedlease_holder);
END//

-- From now on every row that is inserted, updated or deleted in this table needs the resource's fence. TRUNCATE
-- and DROP TABLE meet no trigger: take the privilege DROP from the application's user. Commits implicitly.
CREATE OR REPLACE PROCEDURE protect(p_schema VARCHAR(64), p_table VARCHAR(64), p_resource TEXT)
SQL SECURITY INVOKER
BEGIN
    DECLARE message TEXT;
    DECLARE target TEXT DEFAULT CONCAT('`', REPLACE(p_schema, '`', '``'), '`.`', REPLACE(p_table, '`', '``'), '`');
    DECLARE body TEXT;
    CALL fencedlease.fail_unless_valid(p_resource, '1', 'none');
    IF NOT EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = p_schema
            AND TABLE_NAME = p_table AND TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB') THEN
        SET message = CONCAT(target, ' is no InnoDB table: only those can be protected');
        SIGNAL SQLSTATE '45F03' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = message;
    END IF;
    SET body = CONCAT('CALL fencedlease.require_fence(', QUOTE(p_resource), ')');
    IF EXISTS (SELECT 1 FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = p_schema
            AND EVENT_OBJECT_TABLE = p_table AND TRIGGER_NAME LIKE 'fencedlease\_%'
            AND ACTION_STATEMENT <> body) THEN
        SET message = CONCAT(target, ' is protected by another resource: CALL fencedlease.unprotect first');
        SIGNAL SQLSTATE '45F03' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = message;
    END IF;
    -- What a foreign key changes meets no trigger, so the parent's writers must have the fence.
    IF EXISTS (SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS r
            WHERE r.CONSTRAINT_SCHEMA = p_schema AND r.TABLE_NAME = p_table
            AND NOT (r.UNIQUE_CONSTRAINT_SCHEMA = p_schema AND r.REFERENCED_TABLE_NAME = p_table)
            AND (r.DELETE_RULE IN ('CASCADE', 'SET NULL') OR r.UPDATE_RULE IN ('CASCADE', 'SET NULL'))
            AND NOT EXISTS (SELECT 1 FROM information_schema.TRIGGERS t
                WHERE t.EVENT_OBJECT_SCHEMA = r.UNIQUE_CONSTRAINT_SCHEMA
                AND t.EVENT_OBJECT_TABLE = r.REFERENCED_TABLE_NAME AND t.ACTION_STATEMENT = body)) THEN
        SET message = CONCAT(target, ' is changed by foreign keys (CASCADE, SET NULL) of a table that is not',
            ' protected by ', p_resource, ': protect that one first');
        SIGNAL SQLSTATE '45F03' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = message;
    END IF;
    INSERT IGNORE INTO fencedlease.fences (resource, fence, holder) VALUES (p_resource, 0, '');
    FOR event IN (SELECT 'insert' AS name UNION SELECT 'update' UNION SELECT 'delete') DO
        EXECUTE IMMEDIATE CONCAT('CREATE TRIGGER IF NOT EXISTS ',
            '`', REPLACE(p_schema, '`', '``'), '`.fencedlease_', event.name, '_', LEFT(MD5(p_table), 12),
            ' BEFORE ', event.name, ' ON ', target, ' FOR EACH ROW ', body);
    END FOR;
END//

-- Takes the triggers away again. The fence is remembered. Commits implicitly.
CREATE OR REPLACE PROCEDURE unprotect(p_schema VARCHAR(64), p_table VARCHAR(64))
SQL SECURITY INVOKER
BEGIN
    FOR event IN (SELECT 'insert' AS name UNION SELECT 'update' UNION SELECT 'delete') DO
        EXECUTE IMMEDIATE CONCAT('DROP TRIGGER IF EXISTS ',
            '`', REPLACE(p_schema, '`', '``'), '`.fencedlease_', event.name, '_', LEFT(MD5(p_table), 12));
    END FOR;
END//

DELIMITER ;

CREATE OR REPLACE SQL SECURITY INVOKER VIEW protected_tables AS
    SELECT EVENT_OBJECT_SCHEMA AS table_schema, EVENT_OBJECT_TABLE AS table_name,
        SUBSTRING_INDEX(SUBSTRING_INDEX(MIN(ACTION_STATEMENT), '''', 2), '''', -1) AS resource
    FROM information_schema.TRIGGERS
    WHERE TRIGGER_NAME LIKE 'fencedlease\_%'
    GROUP BY EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE
    HAVING COUNT(*) = 3;

SET sql_mode = @fencedlease_sql_mode;
