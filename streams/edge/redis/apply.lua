-- Write one batch of a partition's documents together with its position, or nothing.
--
-- KEYS[1] is the partition's position; the other keys follow in the order of their first use.
-- ARGV: expected offset ('' begins the partition), new offset, begin, format, partitions, build,
-- writer, offset and id of the last record ('' if none), the topic's id; then groups of operations,
-- each as: name, extra, number of operations, and for each operation its index into KEYS and its
-- arguments.
--
-- A script does not roll back, so everything that could fail is looked at before the first write.
-- Too little memory is refused by Redis itself at the first write, before it changes anything.
--
-- What the partition holds is counted from what each write adds, never from what is there, so that
-- a key that is lost differs from its count for ever: `check.lua` compares. The totals are with the
-- position, in the order of TOTALS; those of a session are in the hash `held`: its events, readings
-- and compactions, and its agent.

local call, sub, min = redis.call, string.sub, math.min

local TOTALS = {'recent', 'pressure', 'idle', 'left', 'live', 'stats'}
local base = sub(KEYS[1], 1, -4)
local held, first = base .. 'held', #base + 1

-- By key: what was added, and the most that a stream holds. By session: its agent.
local added, caps, agents = {}, {}, {}

local function add(key, count)
  if count ~= 0 then added[key] = (added[key] or 0) + count end
end

-- By name: how many arguments an operation has, its key's index included; the type of its key;
-- and what it does, given the key, the index of its first argument in ARGV, and the extra.
local COMMANDS = {
  UNLINK = {1, 'any', function(key)
    call('UNLINK', key)
    if sub(key, first, first + 1) == 's:' then call('HDEL', held, sub(key, first + 2)) end
  end},
  ZREM = {2, 'zset', function(key, i) add(key, -call('ZREM', key, ARGV[i])) end},
  ZTRIM = {2, 'zset', function(key, i)
    add(key, -call('ZREMRANGEBYSCORE', key, '-inf', ARGV[i]))
  end},
  SET = {2, 'string', function(key, i) call('SET', key, ARGV[i]) end},
  HSET = {3, 'hash', function(key, i) add(key, call('HSET', key, ARGV[i], ARGV[i + 1])) end},
  HDEL = {2, 'hash', function(key, i) add(key, -call('HDEL', key, ARGV[i])) end},
  ZADD = {3, 'zset', function(key, i)
    add(key, call('ZADD', key, ARGV[i], ARGV[i + 1]))
    if sub(key, first, first + 1) == 'a:' then agents[ARGV[i + 1]] = sub(key, first + 2) end
  end},
  XADD = {3, 'stream', function(key, i, cap)
    call('XADD', key, 'MAXLEN', '=', cap, ARGV[i], 'd', ARGV[i + 1])
    add(key, 1)
    caps[key] = tonumber(cap)
  end},
}

local function each(visit)
  local i = 11
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

local expected, offset, writer = ARGV[1], ARGV[2], ARGV[7]
local stored = call('HMGET', KEYS[1], 'offset', 'format', 'partitions', 'build', 'writer', 'held')
local at = stored[1] or ''
if at ~= expected then
  -- There already, and by this writer: the call was made before, and its reply was lost.
  if at == offset and stored[5] == writer then return 'done' end
  return 'mismatch'
end
if at ~= '' then
  local other = stored[2] ~= ARGV[4] or stored[3] ~= ARGV[5] or (stored[4] or '') ~= ARGV[6]
  if other then return 'mismatch' end
end

-- `changed` are the sessions that are written, `absent` the keys that are not there yet.
local gone, seen, absent, changed, damaged = {}, {}, {}, {}, false
each(function(command, key, i)
  local expected_type = command[2]
  if expected_type == 'any' then gone[key] = true return end
  if command == COMMANDS.SET then changed[#changed + 1] = sub(key, first + 2) end
  if gone[key] or seen[key] then return end
  seen[key] = true
  local actual_type = call('TYPE', key)['ok']
  if actual_type == 'none' then
    absent[key] = true
  elseif actual_type ~= expected_type then
    damaged = true
  elseif expected_type == 'stream' and #call('XRANGE', key, ARGV[i], '+', 'COUNT', 1) > 0 then
    -- Entries at or above an offset that was never written: not what this position wrote.
    damaged = true
  end
end)
if damaged then return 'damaged' end

-- The counts of before. A key that has a count and is not there was lost.
local totals = {}
for count in string.gmatch(at ~= '' and stored[6] or '', '%d+') do
  totals[#totals + 1] = tonumber(count)
  if totals[#totals] > 0 and absent[base .. TOTALS[#totals]] then return 'damaged' end
end
if at ~= '' and #totals ~= #TOTALS then return 'damaged' end
local before = {}
if #changed > 0 then
  before = redis.pcall('HMGET', held, unpack(changed))
  if before.err then return 'damaged' end
end
local sessions = {}
for i, session in ipairs(changed) do
  local of = {base .. 'e:' .. session, base .. 'r:' .. session, base .. 'c:' .. session, 0, 0, 0, ''}
  if before[i] and not gone[base .. 's:' .. session] then
    local events, readings, compactions, agent = string.match(before[i], '^(%d+) (%d+) (%d+) (.*)$')
    of[4], of[5], of[6], of[7] = tonumber(events), tonumber(readings), tonumber(compactions), agent
  end
  for kind = 1, 3 do
    if of[kind + 3] > 0 and absent[of[kind]] then return 'damaged' end
  end
  sessions[i] = of
end

each(function(command, key, i, extra) command[3](key, i, extra) end)

local after = {}
for i, session in ipairs(changed) do
  local of = sessions[i]
  for kind = 1, 3 do
    local key = of[kind]
    if added[key] then of[kind + 3] = min(of[kind + 3] + added[key], caps[key] or 2 ^ 53) end
  end
  local counts = of[4] .. ' ' .. of[5] .. ' ' .. of[6] .. ' ' .. (agents[session] or of[7])
  if counts ~= before[i] then
    after[#after + 1] = session
    after[#after + 1] = counts
  end
end
if #after > 0 then call('HSET', held, unpack(after)) end
for i, name in ipairs(TOTALS) do
  local key = base .. name
  totals[i] = min((totals[i] or 0) + (added[key] or 0), caps[key] or 2 ^ 53)
end
call('HSET', KEYS[1], 'offset', offset, 'writer', writer, 'held', table.concat(totals, ' '),
  'last', ARGV[8], 'last_id', ARGV[9], 'topic_id', ARGV[10])
if at == '' then
  call('HSET', KEYS[1], 'begin', ARGV[3], 'format', ARGV[4], 'partitions', ARGV[5],
    'build', ARGV[6])
end
return 'applied'
