-- Write one batch of a partition's conversations together with its position, or nothing.
--
-- KEYS[1] is the partition's position, KEYS[2] its sessions; the others are lists of lines.
-- ARGV: expected stamp ('' begins the partition), new stamp, new offset, id of the topic ('' where it
-- is not known), since ('' where nothing was lost before), format, plan, for how many milliseconds lines
-- are kept without a write; then for each list: session, entry ('' removes the session), the length that
-- the list must have, 1 where the lines replace those of the list, number of lines, lines.
--
-- Each write has a stamp of its own, so that one whose reply was lost is known again, also where it
-- left the offset as it was; an offset could be another worker's, or of another log.
--
-- Lines expire by themselves where no worker is left to drop them. A list that is to be empty may have
-- expired before.
--
-- A script does not roll back, so everything that could fail is looked at before the first write.

local call = redis.call
local AT_ONCE = 1000

local stored = call('HMGET', KEYS[1], 'stamp', 'sessions', 'format')
local at = stored[1] or ''
if at == ARGV[2] then return 'done' end
if at ~= ARGV[1] then return 'mismatch' end
local known = at == '' and '0' or stored[2]
if at ~= '' and stored[3] ~= ARGV[6] then return 'mismatch' end
if tostring(call('HLEN', KEYS[2])) ~= known then return 'damaged' end

local function each(visit)
  local i = 9
  for index = 3, #KEYS do
    local lines = tonumber(ARGV[i + 4])
    visit(KEYS[index], i, lines)
    i = i + 5 + lines
  end
end

local damaged = false
each(function(key, i, lines)
  local kind = call('TYPE', key)['ok']
  if kind ~= 'none' and kind ~= 'list' then
    damaged = true
  elseif call('LLEN', key) ~= tonumber(ARGV[i + 2]) then
    damaged = damaged or kind == 'list' or ARGV[i + 3] ~= '1' or lines > 0
  end
end)
if damaged then return 'damaged' end

each(function(key, i, lines)
  if ARGV[i + 1] == '' then
    call('HDEL', KEYS[2], ARGV[i])
    call('UNLINK', key)
    return
  end
  call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  if ARGV[i + 3] == '1' then call('UNLINK', key) end
  for first = 1, lines, AT_ONCE do
    local last = math.min(first + AT_ONCE - 1, lines)
    call('RPUSH', key, unpack(ARGV, i + 4 + first, i + 4 + last))
  end
  call('PEXPIRE', key, ARGV[8])
end)
call('HSET', KEYS[1], 'offset', ARGV[3], 'sessions', call('HLEN', KEYS[2]), 'format', ARGV[6],
  'stamp', ARGV[2])
if ARGV[4] ~= '' then call('HSET', KEYS[1], 'topic', ARGV[4]) end
if at == '' then
  call('HSET', KEYS[1], 'plan', ARGV[7])
  if ARGV[5] ~= '' then call('HSET', KEYS[1], 'since', ARGV[5]) end
end
return 'applied'
