-- Write one batch of a partition's documents together with its position, or nothing.
--
-- KEYS[1] is the partition's position; each other key is that of one operation, in their order.
-- ARGV: expected offset ('' begins the partition), new offset, begin, format, partitions, build,
-- mark; then the operations by name: name, number of keys, for XADD the most that a stream holds, and
-- for each key: number of arguments, arguments. SET has one and UNLINK none, without their number. The
-- mark names the writer and the log.
--
-- A script does not roll back, so everything that could fail is looked at before the first write.
-- Too little memory is refused by Redis itself at the first write, before it changes anything.
--
-- What each key holds is counted in the hash `held`, by the key's name without what all begin with;
-- the number of its fields is with the position. It is counted from what each write adds, never
-- from what is there, so that a key that is lost differs from its count for ever: `check.lua`
-- compares.

local call, pcall, sub, min = redis.call, redis.pcall, string.sub, math.min
local base = sub(KEYS[1], 1, -4) -- the position's key without `pos`
local held, first = base .. 'held', #base + 1

-- By key: what was added, and the most that a stream holds; and by how much `held` itself grew.
local added, caps, fields = {}, {}, 0

local function add(key, count)
  if count ~= 0 then added[key] = (added[key] or 0) + count end
end

-- Call a command with arguments of ARGV: some at a time, as Lua's stack is limited. An even number,
-- so that a field and its value, or a score and its member, stay together.
local function total(name, key, i, count)
  local changed, last = 0, i + count - 1
  for from = i, last, 1000 do
    changed = changed + call(name, key, unpack(ARGV, from, min(from + 999, last)))
  end
  return changed
end

-- By name: the type of the operation's key; what it does, given the key, the index of its first
-- argument in ARGV, how many there are, and the most that a stream holds; and how many there are where
-- their number is not an argument.
local COMMANDS = {
  UNLINK = {'any', function(key)
    call('UNLINK', key)
    fields = fields - call('HDEL', held, sub(key, first))
  end, 0},
  ZREM = {'zset', function(key, i, count) add(key, -total('ZREM', key, i, count)) end},
  ZTRIM = {'zset', function(key, i)
    add(key, -call('ZREMRANGEBYSCORE', key, '-inf', ARGV[i]))
  end},
  SET = {'string', function(key, i) call('SET', key, ARGV[i]) end, 1},
  HSET = {'hash', function(key, i, count) add(key, total('HSET', key, i, count)) end},
  HDEL = {'hash', function(key, i, count) add(key, -total('HDEL', key, i, count)) end},
  ZADD = {'zset', function(key, i, count) add(key, total('ZADD', key, i, count)) end},
  -- Entries. It is enough to cut the stream with the last one.
  XADD = {'stream', function(key, i, count, most)
    local last = i + count - 2
    for at = i, last - 2, 2 do call('XADD', key, ARGV[at], 'd', ARGV[at + 1]) end
    call('XADD', key, 'MAXLEN', '=', most, ARGV[last], 'd', ARGV[last + 1])
    add(key, count / 2)
    caps[key] = most
  end},
}

local function each(visit)
  local i, number, last = 8, 2, #KEYS
  while number <= last do
    local command, until_number, most = COMMANDS[ARGV[i]], number + ARGV[i + 1], nil
    local fixed, stream = command[3], command[1] == 'stream'
    i = i + 2
    if stream then most, i = ARGV[i], i + 1 end
    while number < until_number do
      local count = fixed
      if not fixed then count, i = tonumber(ARGV[i]), i + 1 end
      visit(command, KEYS[number], i, count, most)
      number, i = number + 1, i + count
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
  local expected_type = command[1]
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

each(function(command, key, i, count, most) command[2](key, i, count, most) end)

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
-- The position last, when all that it stands for has been written.
call('HSET', KEYS[1], 'offset', offset, 'mark', mark)
if at == '' then
  call('HSET', KEYS[1], 'begin', ARGV[3], 'format', ARGV[4], 'partitions', ARGV[5],
    'build', ARGV[6])
end
return 'applied'
