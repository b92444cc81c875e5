-- acquire: take the lease if nobody has it, with a fence above every one before it.
--
-- KEYS  1 lease, 2 sequence, 3 holder text, 4 mark of a clean end
-- ARGV  1 owner token, 2 ttl in ms, 3 floor (digits; 0 for none), 4 holder text
--
-- Replies
--   {'ACQUIRED', fence, clean, previous}   fence: digits, above the sequence and above the floor;
--                                          clean: 1 if the last holding ended cleanly, else 0, and the mark
--                                          is gone; previous: the last holder's text, '' if there is none
--   {'HELD', ttl, sequence, holder}        ttl: ms until the lease expires, -1 if it never does;
--                                          sequence: digits, 0 if there is none; nothing was changed
-- Refuses, and changes nothing
--   FENCEDLEASE_SEQUENCE   the sequence is no number of at most 15 digits
--   FENCEDLEASE_LIMIT      no greater fence of 15 digits is left
--
-- Lua counts in doubles, which hold 15 digits exactly; they only compare here. What is stored and answered
-- is text that Redis itself made. The lease is written last, so an error reply means that there is none.

local sequence = redis.pcall('GET', KEYS[2]) or '0'
if type(sequence) == 'table' then
  if not string.find(sequence.err, 'WRONGTYPE', 1, true) then
    return sequence
  end
  sequence = 'a value of another type'
end
if #sequence > 15 or not (sequence == '0' or string.find(sequence, '^[1-9]%d*$')) then
  local found = string.gsub(string.sub(sequence, 1, 40), '[^%w%p ]', '?')
  return redis.error_reply('FENCEDLEASE_SEQUENCE the sequence in ' .. KEYS[2] .. ' is "' .. found ..
    '", not a number of at most 15 digits; nothing was changed. Find out who wrote it, then set it to the ' ..
    'greatest fence that was ever handed out: SET ' .. KEYS[2] .. ' NUMBER')
end

local holder = redis.pcall('GET', KEYS[3])
if type(holder) ~= 'string' then
  holder = ''
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'HELD', redis.call('PTTL', KEYS[1]), sequence, holder}
end

local floor = ARGV[3]
local base = sequence
if tonumber(floor) > tonumber(sequence) then
  base = floor
end
if base == '999999999999999' then
  return redis.error_reply('FENCEDLEASE_LIMIT the sequence in ' .. KEYS[2] .. ' has reached ' .. base ..
    ', and no greater fence can be handed out; nothing was changed. Guard the resource by a FencedLease of ' ..
    'another name, and start its fence checks anew')
end

if base ~= sequence then
  redis.call('SET', KEYS[2], base)
end
redis.call('INCR', KEYS[2])
local fence = redis.call('GET', KEYS[2])
local clean = redis.call('DEL', KEYS[4])
redis.pcall('SET', KEYS[3], ARGV[4])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'ACQUIRED', fence, clean, holder}
