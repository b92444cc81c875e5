-- release: give the lease back, if it is still ours.
--
-- KEYS  1 lease, 2 mark of a clean end
-- ARGV  1 owner token, 2 clean (1 or 0), 3 channel
--
-- Replies
--   {'RELEASED', listeners}   the lease is gone, the mark is set if clean is 1, and the release was published;
--                             listeners: how many heard it, -1 if it could not be published
--   {'NOT_OWNER'}             the lease is not ours (any more); nothing was changed
--
-- Mark and publication go by pcall: a full Redis or a missing right must not undo a release. A mark that is
-- missing only means that the end counts as unclean, a publication that is missing that standbys wait for
-- the expiry that they were told.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'NOT_OWNER'}
end
redis.call('DEL', KEYS[1])
if ARGV[2] == '1' then
  redis.pcall('SET', KEYS[2], '1')
end
local listeners = redis.pcall('PUBLISH', ARGV[3], 'released')
if type(listeners) ~= 'number' then
  listeners = -1
end
return {'RELEASED', listeners}
