-- fenced: run one command if no newer fence was here, and remember the fence. For data that lies in Redis.
--
--   EVAL "$(cat fenced.lua)" 2 {shop/report}:fence {shop/report}:value 42 HOLDING SET {shop/report}:value 7
--
-- KEYS  1 where the fence is kept: a hash of this script's own, without expiry; 2 and up: the keys of the command.
--       In Redis Cluster all need one hash tag, as above
-- ARGV  1 fence (FENCEDLEASE_FENCE), 2 holder (FENCEDLEASE_HOLDING), 3 and up: the command and its words.
--       Without a command the fence is raised, and that is all: what a new holder does first
--
-- Replies
--   what the command replied; 'RAISED' if there was none
-- Refuses, and changes nothing
--   FENCEDLEASE_REFUSED   a newer fence, or another holder with this one, was here: stop, do not try again
--   FENCEDLEASE_INVALID   what cannot be a fence or a holder
--   FENCEDLEASE_MEMORY    the key of the fence holds something else: find out who wrote it
-- An error of the command itself arrives as Redis words it. The fence is raised then all the same.
--
-- More than one command: put them in place of the last line. Redis runs nothing between them, but it does not take
-- back the first if the second fails.
--
-- Lua counts in doubles, which hold 15 digits exactly; they only compare here. What is stored is the text.

local function is_fence(text)
  return type(text) == 'string' and #text <= 15 and string.find(text, '^[1-9]%d*$') ~= nil
end

local function shown(text)
  return '"' .. string.gsub(string.sub(text or '', 1, 80), '[^%w%p ]', '?') .. '"'
end

local fence, holder = ARGV[1], ARGV[2]
if not is_fence(fence) then
  return redis.error_reply('FENCEDLEASE_INVALID fence ' .. shown(fence) ..
    ' is none: pass what FENCEDLEASE_FENCE says, a number from 1 to 999999999999999')
end
if not holder or #holder > 63 or not string.find(holder, '^[%w._-]+$') then
  return redis.error_reply('FENCEDLEASE_INVALID holder ' .. shown(holder) ..
    ' is none: pass what FENCEDLEASE_HOLDING says, 1 to 63 letters, digits, ".", "_" or "-"')
end

local met = redis.pcall('HMGET', KEYS[1], 'fence', 'holder')
if met.err or (redis.call('EXISTS', KEYS[1]) == 1 and not (is_fence(met[1]) and met[2])) then
  return redis.error_reply('FENCEDLEASE_MEMORY ' .. KEYS[1] .. ' holds no fence: find out who wrote it, then set it' ..
    ' to the greatest fence that was accepted: HSET ' .. KEYS[1] .. ' fence NUMBER holder none')
end

local known = tonumber(met[1] or '0')
if known > tonumber(fence) or (known == tonumber(fence) and met[2] ~= holder) then
  return redis.error_reply('FENCEDLEASE_REFUSED fence ' .. fence .. ' of holder ' .. holder .. ' is refused for ' ..
    KEYS[1] .. ': fence ' .. met[1] .. ' of holder ' .. met[2] .. ' was here. Stop working')
end
if known < tonumber(fence) then
  redis.call('HSET', KEYS[1], 'fence', fence, 'holder', holder)
end

if #ARGV == 2 then
  return 'RAISED'
end
return redis.call(unpack(ARGV, 3))
