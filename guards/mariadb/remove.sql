-- Takes FencedLease's fence check out of a MariaDB server: triggers, procedures, and the memory of fences.
-- mariadb < remove.sql. To run it again changes nothing.
--
-- Afterwards nothing refuses a late write. Whoever installs it again should raise the fence at once
-- (CALL fencedlease.use_fence(...) by the holder): until then a former holder's fence would pass.

DELIMITER //

BEGIN NOT ATOMIC
    FOR it IN (SELECT TRIGGER_SCHEMA AS place, TRIGGER_NAME AS name FROM information_schema.TRIGGERS
            WHERE TRIGGER_NAME LIKE 'fencedlease\_%') DO
        EXECUTE IMMEDIATE CONCAT('DROP TRIGGER `', REPLACE(it.place, '`', '``'), '`.`', it.name, '`');
    END FOR;
END//

DELIMITER ;

DROP DATABASE IF EXISTS fencedlease;
