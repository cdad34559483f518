/**
 * Live usage of one namespace in one Redis hash, changed only by this script: the machine of
 * core/quota/machine.ts once more, in Lua. One hash, so that eviction, expiry and loss take all or nothing.
 *
 * | field | holds |
 * | --- | --- |
 * | `a`, `r` | asOf, readAt |
 * | `f` | touched, from, until, startBound, runBound; then a newline and the text |
 * | `l`, `h` | sums over all jobs: of their amounts, and of what starts are held to |
 * | `e`, `z` | no `until` of a job is before the one, none after the other |
 * | a job's id | `r`eserved, ru`n`ning or `g`one; until, heardAt, elapsedMs, amount, floor |
 *
 * Sums are kept rather than formed, so that a decision costs what it asks, however many jobs there are. A
 * number of Lua is a double: quantities are decimal texts, added in parts that stay whole numbers below 2^53.
 */

/** A key outlives the last of its jobs, or the last thing that was asked of it, by a day. */
export const SLACK_MS = 86_400_000;

/**
 * KEYS: the namespace's. ARGV: now, asOf, readAt, what is in `f`, startBound and runBound (empty: none), since, settled and looked
 * (ids with commas), flags (`f`orce, `i`nspect, `r`ecount); then of each ask `s`, job, until, floor, or `r`, job, until, amount,
 * elapsedMs, or `g`, job, or `n`, job.
 *
 * Answers with one text: live, held, per ask a digit (1: allowed, 2: known). Or with a list: `b`, asOf; `g`, asOf, jobs…; or
 * `d`, that text, `a`, `r` and `f` where those kept hold, else empty, and with inspect all fields with what they hold.
 */
export const LIVE_SCRIPT = `
local call, sub, match, format = redis.call, string.sub, string.match, string.format
local key, asOf, body, startBound, runBound = KEYS[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6]
local now, flags = tonumber(ARGV[1]), ARGV[10]
local ASKS, NEVER = 11, 9007199254740991

-- The record of the first job that is asked about comes along: most commands ask about one.
local stored = call('HMGET', key, 'a', 'f', 'l', 'h', 'e', 'z', ARGV[ASKS + 1] or 'a')
local kept = stored[1]
local live, held = stored[3] or '0', stored[4] or '0'
local first, last = tonumber(stored[5] or NEVER), tonumber(stored[6] or 0)
local fetched = { [ARGV[ASKS + 1] or 'a'] = stored[7] }
-- Of each job that was looked at, its record, or false; which of them changed.
local records, dirty, isDirty = {}, {}, false

-- Decimal texts without sign and leading zeros.
local function less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

-- one + sign * other, which is not below zero.
local function plus(one, sign, other)
  if #one < 16 and #other < 16 then return format('%.0f', one + sign * other) end
  local text, carry = '', 0
  for i = 1, math.max(#one, #other) + 1, 14 do
    local part = carry + (tonumber(sub(one, -i - 13, -i)) or 0) + sign * (tonumber(sub(other, -i - 13, -i)) or 0)
    carry = math.floor(part / 1e14)
    text = format('%014.0f', part - carry * 1e14) .. text
  end
  return match(text, '^0*(%d+)$')
end

local function parse(text)
  local kind, ends, heard, elapsed, amount, floor = match(text, '^(%a),(%d+),(%d+),(%d+),(%d+),(%d+)$')
  return { kind = kind, ends = tonumber(ends), heard = heard, elapsed = elapsed, amount = amount, floor = floor }
end

local function get(job)
  local record = records[job]
  if record == nil then
    local text = fetched[job]
    if text == nil then text = kept and call('HGET', key, job) end
    record = text and parse(text) or false
    records[job] = record
  end
  return record
end

local function isLive(record)
  return record and record.kind ~= 'g'
end

local function weight(record)
  return less(record.amount, record.floor) and record.floor or record.amount
end

local function count(sign, record)
  live, held = plus(live, sign, record.amount), plus(held, sign, weight(record))
  if sign == 1 then first, last = math.min(first, record.ends), math.max(last, record.ends) end
end

local function put(job, record)
  local before = get(job)
  if before then count(-1, before) end
  if record then count(1, record) end
  records[job], dirty[job], isDirty = record, true, true
end

-- Reads all records, and with them forms the sums anew.
local function scan()
  local all = call('HGETALL', key)
  live, held, first, last = '0', '0', NEVER, 0
  for i = 1, #all, 2 do
    local job = all[i]
    if match(job, '^%d') then
      local record = parse(all[i + 1])
      if record.ends <= now then
        records[job], dirty[job], isDirty = false, true, true
      else
        records[job] = record
        count(1, record)
      end
    end
  end
end

-- Writes the fields and what else changed; a key that is written for an ask lives on.
local function write(fields)
  local gone = {}
  for job in pairs(dirty) do
    local record = records[job]
    if record then
      fields[#fields + 1] = job
      fields[#fields + 1] = table.concat({
        record.kind, format('%.0f', record.ends), record.heard, record.elapsed, record.amount, record.floor
      }, ',')
    else
      gone[#gone + 1] = job
    end
  end
  if isDirty then
    local n = #fields
    fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'l', live, 'h', held
    fields[n + 5], fields[n + 6], fields[n + 7], fields[n + 8] = 'e', format('%.0f', first), 'z', format('%.0f', last)
  end
  -- What Lua unpacks at once is bounded.
  for i = 1, #fields, 1000 do call('HSET', key, unpack(fields, i, math.min(i + 999, #fields))) end
  for i = 1, #gone, 1000 do call('HDEL', key, unpack(gone, i, math.min(i + 999, #gone))) end
  if #fields > 0 and ARGV[ASKS] then
    call('PEXPIRE', key, format('%.0f', math.max(last - now, 0) + ${SLACK_MS}))
  end
end

local function within(list)
  local set = {}
  for job in string.gmatch(list, '[^,]+') do set[job] = true end
  return set
end

-- How many words an ask has.
local SIZES = { s = 4, r = 5, g = 2, n = 2 }

if now >= first or (kept and string.find(flags, 'r', 1, true)) then
  scan()
  isDirty = true
end

local isOlder = kept and kept ~= asOf and less(asOf, kept) and not string.find(flags, 'f', 1, true)
if isOlder then
  local touched, from, ends, start, run = match(stored[2], '^(-?%d+),(-?%d+),(-?%d+),(-?%d*),(-?%d*)')
  local behind = now < tonumber(from) or now >= tonumber(ends)
  if sub(touched, 1, 1) ~= '-' and not less(touched, asOf) then
    local i = ASKS
    while ARGV[i] do
      behind = behind or (ARGV[i] == 'r' and not get(ARGV[i + 1]))
      i = i + SIZES[ARGV[i]]
    end
  end
  if behind then
    write({})
    return { 'b', kept }
  end
  startBound, runBound = start, run
elseif kept and kept ~= asOf and less(kept, ARGV[7]) then
  local looked, answer, isOpen = within(ARGV[9]), { 'g', kept }, false
  scan()
  for job, record in pairs(records) do
    if isLive(record) then
      answer[#answer + 1] = job
      isOpen = isOpen or not looked[job]
    end
  end
  if isOpen then
    write({})
    return answer
  end
end

local fields = {}
if not isOlder and (kept ~= asOf or stored[2] ~= body) then
  if kept ~= asOf then
    for job in pairs(within(ARGV[8])) do
      if get(job) then put(job, false) end
    end
  end
  if kept or ARGV[ASKS] then
    fields = { 'a', asOf, 'r', ARGV[3] }
    if stored[2] ~= body then fields[5], fields[6] = 'f', body end
  end
end

local i = ASKS
while ARGV[i] do
  local kind, job = ARGV[i], ARGV[i + 1]
  if kind == 'n' then
    local record = get(job)
    if isLive(record) then
      put(job, { kind = 'g', ends = record.ends, heard = record.heard, elapsed = record.elapsed, amount = '0', floor = '0' })
    end
  elseif kind == 'r' then
    local record, ends, amount, elapsed = get(job), tonumber(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4]
    if ends > now and (not record or record.kind == 'r' or less(record.elapsed, elapsed)) then
      local floor = record and record.floor or '0'
      put(job, { kind = 'n', ends = ends, heard = ARGV[1], elapsed = elapsed, amount = amount, floor = floor })
    end
  end
  i = i + SIZES[kind]
end

-- No bound: always. One below zero: never.
local mayRun = runBound == '' or (sub(runBound, 1, 1) ~= '-' and not less(runBound, live))
local asked, allowed = {}, {}
i = ASKS
while ARGV[i] do
  local kind, job = ARGV[i], ARGV[i + 1]
  local may = kind == 'n' or mayRun
  if kind == 's' then
    local record, ends = get(job), tonumber(ARGV[i + 2])
    local others = record and plus(held, -1, weight(record)) or held
    may = startBound == '' or (sub(startBound, 1, 1) ~= '-' and less(others, startBound))
    if may and ends > now then
      if not isLive(record) then
        put(job, { kind = 'r', ends = ends, heard = ARGV[1], elapsed = '0', amount = '0', floor = ARGV[i + 3] })
      elseif record.kind == 'r' and ends > record.ends then
        put(job, { kind = 'r', ends = ends, heard = record.heard, elapsed = '0', amount = '0', floor = record.floor })
      end
    end
  end
  asked[#asked + 1], allowed[#allowed + 1] = job, may
  i = i + SIZES[kind]
end

local results = ''
for n = 1, #asked do
  results = results .. (allowed[n] and 1 or 0) + (isLive(get(asked[n])) and 2 or 0)
end
if isDirty or #fields > 0 then write(fields) end

local done = live .. ',' .. held .. ',' .. results
local isInspected = string.find(flags, 'i', 1, true)
if not (isOlder or isInspected) then return done end
local answer = { 'd', done, '', '', '' }
if isOlder then answer[3], answer[4], answer[5] = kept, call('HGET', key, 'r'), stored[2] end
if isInspected then
  for _, text in ipairs(call('HGETALL', key)) do answer[#answer + 1] = text end
end
return answer
`;
