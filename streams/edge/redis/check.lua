-- Compare what a partition's keys hold with what `apply.lua` counted; nothing is written.
--
-- KEYS[1] is the partition's position. ARGV: where to go on among its keys (0: from the first), and
-- about how many to look at; those that hold all sessions are compared each time.
-- Returns the key that differs ('' where none does), and where to go on.

local call, pcall = redis.call, redis.pcall
local base = string.sub(KEYS[1], 1, -4)
local held = base .. 'held'

local SIZES = {recent = 'ZCARD', pressure = 'ZCARD', idle = 'ZCARD', left = 'ZCARD', live = 'XLEN',
  stats = 'HLEN', held = 'HLEN', ['a:'] = 'ZCARD', ['c:'] = 'HLEN', ['e:'] = 'XLEN', ['r:'] = 'XLEN',
  ['s:'] = 'EXISTS'}
local TOTALS = {'recent', 'pressure', 'idle', 'left', 'live', 'stats'}

local stored = call('HMGET', KEYS[1], 'offset', 'held')
if not stored[1] or tonumber(stored[1]) < 0 then return {'', '0'} end

local function differs(name, count)
  local size = pcall(SIZES[name] or SIZES[string.sub(name, 1, 2)], base .. name)
  -- A key of another type differs. Any other error, such as a missing right, says nothing of it.
  if type(size) == 'table' and not string.find(size.err, 'WRONGTYPE') then error(size.err) end
  return size ~= tonumber(count)
end

if differs('held', stored[2] or 0) then return {'held', '0'} end

local counts = call('HMGET', held, unpack(TOTALS))
for i, name in ipairs(TOTALS) do
  if differs(name, counts[i] or 0) then return {name, '0'} end
end
local page = call('HSCAN', held, ARGV[1], 'COUNT', ARGV[2])
for i = 1, #page[2], 2 do
  if differs(page[2][i], page[2][i + 1]) then return {page[2][i], '0'} end
end
return {'', page[1]}
