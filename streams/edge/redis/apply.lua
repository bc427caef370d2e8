-- Write one batch of a partition's documents together with its position, or nothing.
--
-- KEYS[1] is the partition's position; the other keys follow in the order of their first use.
-- ARGV: expected offset ('' begins the partition), new offset, begin, format, partitions, build; then
-- groups of operations, each as: name, extra, number of operations, and for each operation its
-- index into KEYS and its arguments.
--
-- A script does not roll back, so everything that could fail is looked at before the first write.
-- Too little memory is refused by Redis itself at the first write, before it changes anything.

local call = redis.call

-- By name: how many arguments an operation has, its key's index included; the type of its key;
-- and what it does, given the key, the index of its first argument in ARGV, and the extra.
local COMMANDS = {
  UNLINK = {1, 'any', function(key) call('UNLINK', key) end},
  ZREM = {2, 'zset', function(key, i) call('ZREM', key, ARGV[i]) end},
  ZTRIM = {2, 'zset', function(key, i) call('ZREMRANGEBYSCORE', key, '-inf', ARGV[i]) end},
  SET = {2, 'string', function(key, i) call('SET', key, ARGV[i]) end},
  HSET = {3, 'hash', function(key, i) call('HSET', key, ARGV[i], ARGV[i + 1]) end},
  HDEL = {2, 'hash', function(key, i) call('HDEL', key, ARGV[i]) end},
  ZADD = {3, 'zset', function(key, i) call('ZADD', key, ARGV[i], ARGV[i + 1]) end},
  XADD = {3, 'stream', function(key, i, cap)
    call('XADD', key, 'MAXLEN', '=', cap, ARGV[i], 'd', ARGV[i + 1])
  end},
}

local function each(visit)
  local i = 7
  while i <= #ARGV do
    local name, extra, count = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
    local command = COMMANDS[name]
    i = i + 3
    for _ = 1, count do
      visit(command, KEYS[tonumber(ARGV[i])], i + 1, extra)
      i = i + command[1]
    end
  end
end

local expected, offset = ARGV[1], ARGV[2]
local stored = call('HMGET', KEYS[1], 'offset', 'format', 'partitions', 'build')
local at = stored[1] or ''
if at ~= expected then
  -- There already: this call was made before, and its reply was lost.
  if at == offset then return 'done' end
  return 'mismatch'
end
if at ~= '' then
  local other = stored[2] ~= ARGV[4] or stored[3] ~= ARGV[5] or (stored[4] or '') ~= ARGV[6]
  if other then return 'mismatch' end
end

local gone, seen, damaged = {}, {}, false
each(function(command, key, i)
  local expected_type = command[2]
  if expected_type == 'any' then gone[key] = true return end
  if gone[key] or seen[key] then return end
  seen[key] = true
  local actual_type = call('TYPE', key)['ok']
  if actual_type == 'none' then return end
  if actual_type ~= expected_type then
    damaged = true
  elseif expected_type == 'stream' and #call('XRANGE', key, ARGV[i], '+', 'COUNT', 1) > 0 then
    -- Entries at or above an offset that was never written: not what this position wrote.
    damaged = true
  end
end)
if damaged then return 'damaged' end

each(function(command, key, i, extra) command[3](key, i, extra) end)
call('HSET', KEYS[1], 'offset', offset)
if at == '' then
  call('HSET', KEYS[1], 'begin', ARGV[3], 'format', ARGV[4], 'partitions', ARGV[5],
    'build', ARGV[6])
end
return 'applied'
