-- renew: extend the lease, if it is still ours.
--
-- KEYS  1 lease, 2 sequence, 3 holder text
-- ARGV  1 owner token, 2 ttl in ms, 3 fence (digits)
--
-- Replies
--   {'RENEWED', ttl, seconds, microseconds}   ttl: ms that were left, -1 if it would never have expired;
--                                             then Redis's clock, read right after it
--   {'SEQUENCE_LOST', sequence}               the lease is ours, but the sequence was below our fence: Redis
--                                             has lost data. Not extended
--   {'OTHER_OWNER', ttl, sequence, holder}    somebody else has the lease
--   {'KEY_GONE', sequence}                    nobody has
-- sequence: digits as they were found, 0 if there were none. One below our fence is set to our fence in every
-- case, so that no later fence repeats it; nothing else is changed unless the lease is ours.
-- Refuses, and changes nothing
--   FENCEDLEASE_SEQUENCE   the sequence is no number of at most 15 digits
--
-- The last command that touches the lease reads it, so that a client that tracks it is told of a change.

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

local owner = redis.call('GET', KEYS[1])
local behind = tonumber(sequence) < tonumber(ARGV[3])
if behind then
  -- By pcall: the answer must arrive even where Redis is full.
  redis.pcall('SET', KEYS[2], ARGV[3])
end
if not owner then
  return {'KEY_GONE', sequence}
end
if owner ~= ARGV[1] then
  local holder = redis.pcall('GET', KEYS[3])
  if type(holder) ~= 'string' then
    holder = ''
  end
  return {'OTHER_OWNER', redis.call('PTTL', KEYS[1]), sequence, holder}
end
if behind then
  return {'SEQUENCE_LOST', sequence}
end

local ttl = redis.call('PTTL', KEYS[1])
local time = redis.call('TIME')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {'KEY_GONE', sequence}
end
return {'RENEWED', ttl, time[1], time[2]}
