-- inspect: how a lease stands, for diagnosis. Changes nothing, and never tells the owner token.
--
-- KEYS  1 lease, 2 sequence, 3 holder text, 4 mark of a clean end
--
-- Replies
--   {held, ttl, sequence, holder, clean, seconds, microseconds}
--   held: 1 or 0; ttl: ms until the lease expires, -1 if it never does, -2 if there is none; sequence: the
--   text as it is stored, whatever it is, '' if there is none; holder: the present or last holder's text, '' if
--   there is none; clean: 1 if the mark is set; then Redis's clock.

local function text(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    return 'a value of another type'
  end
  return value or ''
end

local time = redis.call('TIME')
return {
  redis.call('EXISTS', KEYS[1]),
  redis.call('PTTL', KEYS[1]),
  text(KEYS[2]),
  text(KEYS[3]),
  redis.call('EXISTS', KEYS[4]),
  time[1],
  time[2],
}
