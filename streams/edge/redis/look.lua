-- Read some of a partition's sessions at one instant; nothing is written.
--
-- KEYS: the partition's position; its sorted sets recent, pressure, idle, left; then for each session
-- its view, compactions, events and readings. ARGV: the sessions.
-- Returns the offset, then for each session its view, the three digests and the four scores.
-- Digests avoid sending megabytes that are equal in all but a handful of sessions.

local call, digest = redis.call, redis.sha1hex

local function of_hash(key)
  local flat = call('HGETALL', key)
  if #flat == 0 then return false end
  -- A hash does not keep the order in which its fields were written.
  local fields = {}
  for i = 1, #flat, 2 do fields[#fields + 1] = digest(flat[i]) .. digest(flat[i + 1]) end
  table.sort(fields)
  return digest(table.concat(fields))
end

local function of_stream(key)
  local entries = call('XRANGE', key, '-', '+')
  if #entries == 0 then return false end
  local digests = {}
  for i, entry in ipairs(entries) do digests[i] = entry[1] .. digest(entry[2][2]) end
  return digest(table.concat(digests, ' '))
end

local answer = {call('HGET', KEYS[1], 'offset')}
for i, session in ipairs(ARGV) do
  local first = 2 + 4 * i
  local state = {
    call('GET', KEYS[first]),
    of_hash(KEYS[first + 1]),
    of_stream(KEYS[first + 2]),
    of_stream(KEYS[first + 3]),
  }
  for set = 2, 5 do state[set + 3] = call('ZSCORE', KEYS[set], session) end
  answer[#answer + 1] = state
end
return answer
