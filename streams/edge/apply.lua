-- Write one batch of a partition's documents together with its position, or nothing.
--
-- KEYS[1] is the partition's position; the other keys follow in the order of their first use.
-- ARGV: expected offset ('' begins the partition), new offset, begin, format, partitions, and then
-- the operations, each as: command, index into KEYS, number of arguments, the arguments.
--
-- A script does not roll back, so everything that could fail is looked at before the first write.
-- Too little memory is refused by Redis itself at the first write, before it changes anything.

local TYPES = {
  SET = 'string', HSET = 'hash', HDEL = 'hash', XADD = 'stream',
  ZADD = 'zset', ZREM = 'zset', ZREMRANGEBYSCORE = 'zset', UNLINK = 'any',
}

local expected, offset = ARGV[1], ARGV[2]
local stored = redis.call('HMGET', KEYS[1], 'offset', 'format', 'partitions')
local at = stored[1] or ''
if at ~= expected then
  -- There already: this call was made before, and its reply was lost.
  if at == offset then return 'done' end
  return 'mismatch'
end
if at ~= '' and (stored[2] ~= ARGV[4] or stored[3] ~= ARGV[5]) then return 'mismatch' end

local gone, looked_at = {}, {}
local function each(visit)
  local i = 6
  while i <= #ARGV do
    local count = tonumber(ARGV[i + 2])
    visit(ARGV[i], KEYS[tonumber(ARGV[i + 1])], i + 3, i + 2 + count)
    i = i + 3 + count
  end
end

local damaged = false
each(function(command, key, first, _)
  local wanted = TYPES[command]
  if wanted == nil then damaged = true return end
  if wanted == 'any' then gone[key] = true return end
  if gone[key] then return end
  local found = redis.call('TYPE', key)['ok']
  if found ~= 'none' and found ~= wanted then damaged = true end
  if command == 'XADD' and found == wanted and not looked_at[key] then
    -- Entries at or above an offset that was never written: not what this position left behind.
    looked_at[key] = true
    if #redis.call('XRANGE', key, ARGV[first + 3], '+', 'COUNT', 1) > 0 then damaged = true end
  end
end)
if damaged then return 'damaged' end

each(function(command, key, first, last)
  redis.call(command, key, unpack(ARGV, first, last))
end)
redis.call('HSET', KEYS[1], 'offset', offset)
if at == '' then
  redis.call('HSET', KEYS[1], 'begin', ARGV[3], 'format', ARGV[4], 'partitions', ARGV[5])
end
return 'applied'
