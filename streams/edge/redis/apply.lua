-- Write one batch of a partition's documents together with its position, or nothing.
--
-- KEYS[1] is the partition's position; the other keys follow in the order of their first use.
-- ARGV: expected offset ('' begins the partition), new offset, begin, format, partitions, build,
-- mark; then groups of operations, each as: name, extra, number of operations, and for each
-- operation its index into KEYS and its arguments. The mark names the writer and the log.
--
-- A script does not roll back, so everything that could fail is looked at before the first write.
-- Too little memory is refused by Redis itself at the first write, before it changes anything.
--
-- What each key holds is counted in the hash `held`, by the key's name without what all begin with;
-- the number of its fields is with the position. It is counted from what each write adds, never
-- from what is there, so that a key that is lost differs from its count for ever: `check.lua`
-- compares.

local call, pcall, sub, min = redis.call, redis.pcall, string.sub, math.min
local base = sub(KEYS[1], 1, -4)
local held, first = base .. 'held', #base + 1

-- By key: what was added, and the most that a stream holds; and by how much `held` itself grew.
local added, caps, fields = {}, {}, 0

local function add(key, count)
  if count ~= 0 then added[key] = (added[key] or 0) + count end
end

-- By name: how many arguments an operation has, its key's index included; the type of its key;
-- and what it does, given the key, the index of its first argument in ARGV, and the extra.
local COMMANDS = {
  UNLINK = {1, 'any', function(key)
    call('UNLINK', key)
    fields = fields - call('HDEL', held, sub(key, first))
  end},
  ZREM = {2, 'zset', function(key, i) add(key, -call('ZREM', key, ARGV[i])) end},
  ZTRIM = {2, 'zset', function(key, i)
    add(key, -call('ZREMRANGEBYSCORE', key, '-inf', ARGV[i]))
  end},
  SET = {2, 'string', function(key, i) call('SET', key, ARGV[i]) end},
  HSET = {3, 'hash', function(key, i) add(key, call('HSET', key, ARGV[i], ARGV[i + 1])) end},
  HDEL = {2, 'hash', function(key, i) add(key, -call('HDEL', key, ARGV[i])) end},
  ZADD = {3, 'zset', function(key, i) add(key, call('ZADD', key, ARGV[i], ARGV[i + 1])) end},
  XADD = {3, 'stream', function(key, i, cap)
    call('XADD', key, 'MAXLEN', '=', cap, ARGV[i], 'd', ARGV[i + 1])
    added[key] = (added[key] or 0) + 1
    caps[key] = cap
  end},
}

local function each(visit)
  local i = 8
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

local expected, offset, mark = ARGV[1], ARGV[2], ARGV[7]
local stored = call('HMGET', KEYS[1], 'offset', 'format', 'partitions', 'build', 'mark', 'held')
local at = stored[1] or ''
if at ~= expected then
  -- There already, and by this writer: the call was made before, and its reply was lost.
  if at == offset and stored[5] == mark then return 'done' end
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
  if seen[key] then return end
  seen[key] = true
  if expected_type == 'stream' then
    if gone[key] then return end
    -- Entries at or above an offset that was never written are not what this position wrote; and
    -- the reply is an error where the key has another type.
    local ahead = pcall('XRANGE', key, ARGV[i], '+', 'COUNT', 1)
    damaged = damaged or ahead.err ~= nil or #ahead > 0
    return
  end
  local actual_type = gone[key] and 'none' or call('TYPE', key)['ok']
  if actual_type == 'none' then
    if expected_type == 'string' then added[key] = 1 end
  elseif actual_type ~= expected_type then
    damaged = true
  end
end)
if damaged or call('TYPE', held)['ok'] ~= (stored[6] and 'hash' or 'none') then return 'damaged' end

each(function(command, key, i, extra) command[3](key, i, extra) end)

local keys, names, changed = {}, {}, {}
for key in pairs(added) do
  keys[#keys + 1] = key
  names[#names + 1] = sub(key, first)
end
if #names > 0 then
  for i, before in ipairs(call('HMGET', held, unpack(names))) do
    local count, cap = added[keys[i]], caps[keys[i]]
    if before then count = count + before end
    if cap then count = min(count, tonumber(cap)) end
    changed[2 * i - 1], changed[2 * i] = names[i], count
  end
  fields = fields + call('HSET', held, unpack(changed))
end
if fields ~= 0 then call('HSET', KEYS[1], 'held', (stored[6] or 0) + fields) end
call('HSET', KEYS[1], 'offset', offset, 'mark', mark)
if at == '' then
  call('HSET', KEYS[1], 'begin', ARGV[3], 'format', ARGV[4], 'partitions', ARGV[5],
    'build', ARGV[6])
end
return 'applied'
