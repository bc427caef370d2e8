-- Compare what a partition holds with what `apply.lua` counted; nothing is written.
--
-- KEYS[1] is the partition's position. ARGV: where to go on among its sessions (0: from the first),
-- and about how many to look at.
-- Returns what differs ('' where nothing does), and where to go on.

local pcall = redis.pcall
local base = string.sub(KEYS[1], 1, -4)

local TOTALS = {'recent', 'pressure', 'idle', 'left', 'live', 'stats'}
local SIZES = {recent = 'ZCARD', pressure = 'ZCARD', idle = 'ZCARD', left = 'ZCARD', live = 'XLEN',
  stats = 'HLEN'}

local stored = redis.call('HMGET', KEYS[1], 'offset', 'held')
if not stored[1] or tonumber(stored[1]) < 0 then return {'', '0'} end

local number = 0
for count in string.gmatch(stored[2] or '', '%d+') do
  number = number + 1
  local name = TOTALS[number]
  -- The reply is an error, which is no number, where a key has another type.
  if pcall(SIZES[name], base .. name) ~= tonumber(count) then return {name, '0'} end
end
if number ~= #TOTALS then return {'pos', '0'} end

local page = redis.call('ZSCAN', base .. 'recent', ARGV[1], 'COUNT', ARGV[2])
local sessions = {}
for i = 1, #page[2], 2 do sessions[#sessions + 1] = page[2][i] end
if #sessions == 0 then return {'', page[1]} end
local held = pcall('HMGET', base .. 'held', unpack(sessions))
if held.err then return {'held', '0'} end
for i, session in ipairs(sessions) do
  if not held[i] then return {'held', '0'} end
  local events, readings, compactions, agent = string.match(held[i], '^(%d+) (%d+) (%d+) (.*)$')
  local lost = pcall('EXISTS', base .. 's:' .. session) ~= 1 and 's:'
    or pcall('XLEN', base .. 'e:' .. session) ~= tonumber(events) and 'e:'
    or pcall('XLEN', base .. 'r:' .. session) ~= tonumber(readings) and 'r:'
    or pcall('HLEN', base .. 'c:' .. session) ~= tonumber(compactions) and 'c:'
    or agent ~= '' and not pcall('ZSCORE', base .. 'a:' .. agent, session) and 'a:'
  if lost then return {lost .. session, '0'} end
end
return {'', page[1]}
