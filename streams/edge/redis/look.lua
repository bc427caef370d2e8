-- Tell of some of a partition's sessions what they are at one moment; nothing is written.
--
-- KEYS: the partition's position; its sorted sets recent, pressure, idle, left; then for each session
-- its view, compactions, events and readings. ARGV: the sessions.
-- The answer: the offset, then for each session its view, the three digests and the four scores.
-- Digests spare sending megabytes that are equal in all but a handful of sessions.

local call, digest = redis.call, redis.sha1hex

local function of_hash(key)
  local found = call('HGETALL', key)
  if #found == 0 then return false end
  -- The order of a hash's fields is not that of their writing.
  local fields = {}
  for i = 1, #found, 2 do fields[#fields + 1] = digest(found[i]) .. digest(found[i + 1]) end
  table.sort(fields)
  return digest(table.concat(fields))
end

local function of_stream(key)
  local found = call('XRANGE', key, '-', '+')
  if #found == 0 then return false end
  local entries = {}
  for i, entry in ipairs(found) do entries[i] = entry[1] .. digest(entry[2][2]) end
  return digest(table.concat(entries, ' '))
end

local answer = {call('HGET', KEYS[1], 'offset')}
for i, session in ipairs(ARGV) do
  local first = 2 + 4 * i
  local found = {
    call('GET', KEYS[first]),
    of_hash(KEYS[first + 1]),
    of_stream(KEYS[first + 2]),
    of_stream(KEYS[first + 3]),
  }
  for set = 2, 5 do found[set + 3] = call('ZSCORE', KEYS[set], session) end
  answer[#answer + 1] = found
end
return answer
