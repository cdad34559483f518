/**
 * Live usage of one namespace in one Redis hash, changed only by this script: the machine of
 * core/quota/machine.ts once more, in Lua. One hash, so that eviction, expiry and loss take all or nothing.
 *
 * | field | holds |
 * | --- | --- |
 * | `a` | asOf, readAt |
 * | `f` | touched, from, until, startBound, runBound; then a newline and the text |
 * | `t` | sums over all jobs of amounts and of what starts are held to; no `until` is before the third, none after the fourth |
 * | a job's id | `r`eserved, ru`n`ning or `g`one; until, heardAt, elapsedMs, amount, floor |
 *
 * Sums are kept rather than formed, so that a decision costs what it asks, however many jobs there are. A
 * number of Lua is a double: quantities are added in limbs of 14 digits, each a whole number below 2^53.
 */

/** A key outlives the last of its jobs, or the last thing that was asked of it, by a day. */
export const SLACK_MS = 86_400_000;

/**
 * KEYS: the namespace's. ARGV: now, asOf, readAt, what is in `f`, since, settled, looked (ids with commas), flags (`f`orce,
 * `i`nspect, `r`ecount), then per ask `s,job,until,floor`, `r,job,until,elapsedMs,amount`, `g,job` or `n,job`.
 *
 * Answers `b`, asOf; or `g`, asOf, jobs…; or `d`, live, held, per ask a digit (1: allowed, 2: known), `a` and `f` where those
 * kept hold, else empty; with inspect then jobs and their fields in turn.
 */
export const LIVE_SCRIPT = `
local call, sub, match, format = redis.call, string.sub, string.match, string.format
local key, now = KEYS[1], tonumber(ARGV[1])
local asOf, readAt, body, since = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local flags = ARGV[8]
local BASE, ASKS = 1e14, 9

local function limbs(text)
  if #text <= 14 then return { tonumber(text), 0, 0, 0 } end
  return {
    tonumber(sub(text, -14)),
    tonumber(sub(text, -28, -15)),
    tonumber(sub(text, -42, -29)) or 0,
    tonumber(sub(text, -56, -43)) or 0,
  }
end

local function digits(limb)
  local top = 4
  while top > 1 and limb[top] == 0 do top = top - 1 end
  local text = format('%.0f', limb[top])
  for i = top - 1, 1, -1 do text = text .. format('%014.0f', limb[i]) end
  return text
end

local function add(sum, other)
  local carry = 0
  for i = 1, 4 do
    local limb = sum[i] + other[i] + carry
    carry = limb >= BASE and 1 or 0
    sum[i] = limb - carry * BASE
  end
end

local function subtract(sum, other)
  local borrow = 0
  for i = 1, 4 do
    local limb = sum[i] - other[i] - borrow
    borrow = limb < 0 and 1 or 0
    sum[i] = limb + borrow * BASE
  end
end

local function compare(one, other)
  for i = 4, 1, -1 do
    if one[i] ~= other[i] then return one[i] < other[i] and -1 or 1 end
  end
  return 0
end

-- Decimal texts without sign and leading zeros.
local function less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

local function within(list)
  local set = {}
  for job in string.gmatch(list, '[^,]+') do set[job] = true end
  return set
end

local stored = call('HMGET', key, 'a', 'f', 't')
local kept = stored[1] and match(stored[1], '^%d+')
local live, held = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
-- No record runs out before the one, none after the other.
local first, last = math.huge, 0
if stored[3] then
  local a, b, c, d = match(stored[3], '^(%d+),(%d+),(%d*),(%d+)$')
  live, held, first, last = limbs(a), limbs(b), tonumber(c) or math.huge, tonumber(d)
end

-- Job to record, false if there is none; what must be written of them.
local records, dirty, isDirty = {}, {}, false

local function parse(text)
  local kind, ends, heard, elapsed, amount, floor = match(text, '^(%a),(%d+),(%d+),(%d+),(%d+),(%d+)$')
  return { kind = kind, ends = tonumber(ends), heard = heard, elapsed = elapsed, amount = amount, floor = floor }
end

local function get(job)
  local record = records[job]
  if record == nil then
    local text = kept and call('HGET', key, job)
    record = text and parse(text) or false
    records[job] = record
  end
  return record
end

local function weight(record)
  return limbs(less(record.amount, record.floor) and record.floor or record.amount)
end

local function count(record)
  add(live, limbs(record.amount))
  add(held, weight(record))
  if record.ends < first then first = record.ends end
  if record.ends > last then last = record.ends end
end

local function put(job, record)
  local before = get(job)
  if before then
    subtract(live, limbs(before.amount))
    subtract(held, weight(before))
  end
  if record then count(record) end
  records[job], dirty[job], isDirty = record, true, true
end

local function isLive(record)
  return record and record.kind ~= 'g'
end

-- Reads all records, and with them forms the sums again.
local function scan()
  local all = call('HGETALL', key)
  live, held, first, last = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, math.huge, 0
  for i = 1, #all, 2 do
    local job = all[i]
    if job ~= 'a' and job ~= 'f' and job ~= 't' then
      local record = parse(all[i + 1])
      if record.ends <= now then
        records[job], dirty[job], isDirty = false, true, true
      else
        records[job] = record
        count(record)
      end
    end
  end
end

if now >= first or (kept and string.find(flags, 'r', 1, true)) then
  scan()
  isDirty = true
end

-- Writes what changed; a key that is written for an ask lives on.
local function write(fields)
  local gone = {}
  for job in pairs(dirty) do
    local record = records[job]
    if record then
      fields[#fields + 1] = job
      fields[#fields + 1] = record.kind .. ',' .. format('%.0f', record.ends) .. ',' .. record.heard .. ','
        .. record.elapsed .. ',' .. record.amount .. ',' .. record.floor
    else
      gone[#gone + 1] = job
    end
  end
  if isDirty then
    fields[#fields + 1] = 't'
    fields[#fields + 1] = digits(live) .. ',' .. digits(held) .. ','
      .. (first == math.huge and '' or format('%.0f', first)) .. ',' .. format('%.0f', last)
  end
  -- What Lua unpacks at once is bounded.
  for i = 1, #fields, 1000 do call('HSET', key, unpack(fields, i, math.min(i + 999, #fields))) end
  for i = 1, #gone, 1000 do call('HDEL', key, unpack(gone, i, math.min(i + 999, #gone))) end
  if #fields > 0 and ARGV[ASKS] then
    call('PEXPIRE', key, format('%.0f', math.max(last - now, 0) + ${SLACK_MS}))
  end
end

local figures, isOlder = body, false
if kept and less(asOf, kept) and not string.find(flags, 'f', 1, true) then
  local touched, from, ends = match(stored[2], '^(-?%d+),(-?%d+),(-?%d+),')
  local behind = now < tonumber(from) or now >= tonumber(ends)
  if not behind and sub(touched, 1, 1) ~= '-' and not less(touched, asOf) then
    for i = ASKS, #ARGV do
      local kind, job = match(ARGV[i], '^(%a),(%d+)')
      if kind == 'r' and not get(job) then behind = true end
    end
  end
  if behind then
    write({})
    return { 'b', kept }
  end
  figures, isOlder = stored[2], true
elseif kept and less(kept, since) then
  local looked, answer, isOpen = within(ARGV[7]), { 'g', kept }, false
  scan()
  for job, record in pairs(records) do
    if isLive(record) then
      answer[#answer + 1] = job
      if not looked[job] then isOpen = true end
    end
  end
  if isOpen then
    write({})
    return answer
  end
end

local fields = {}
if not isOlder then
  if kept ~= asOf then
    for job in pairs(within(ARGV[6])) do
      if get(job) then put(job, false) end
    end
  end
  if (kept or ARGV[ASKS]) and (kept ~= asOf or stored[2] ~= body) then
    fields = { 'a', asOf .. ',' .. readAt }
    if stored[2] ~= body then fields[3], fields[4] = 'f', body end
  end
end

for i = ASKS, #ARGV do
  local kind, job, ends, elapsed, amount = match(ARGV[i], '^(%a),(%d+),?(%d*),?(%d*),?(%d*)$')
  if kind == 'n' then
    local record = get(job)
    if isLive(record) then
      put(job, { kind = 'g', ends = record.ends, heard = record.heard, elapsed = record.elapsed, amount = '0', floor = '0' })
    end
  elseif kind == 'r' and tonumber(ends) > now then
    local record = get(job)
    if not record or record.kind == 'r' or less(record.elapsed, elapsed) then
      local floor = record and record.floor or '0'
      put(job, { kind = 'n', ends = tonumber(ends), heard = ARGV[1], elapsed = elapsed, amount = amount, floor = floor })
    end
  end
end

-- No bound: always. One below zero: never.
local start, run = match(figures, '^[^,]*,[^,]*,[^,]*,([^,]*),([^\\n]*)\\n')
local startBound = match(start, '^%d') and limbs(start)
local mayRun = run == '' or (match(run, '^%d') ~= nil and compare(live, limbs(run)) <= 0)
local asked, allowed = {}, {}
for i = ASKS, #ARGV do
  local kind, job, ends, floor = match(ARGV[i], '^(%a),(%d+),?(%d*),?(%d*)')
  local may = mayRun
  if kind == 'n' then
    may = true
  elseif kind == 's' then
    local record = get(job)
    may = start == ''
    if startBound then
      local others = { held[1], held[2], held[3], held[4] }
      if record then subtract(others, weight(record)) end
      may = compare(others, startBound) < 0
    end
    ends = tonumber(ends)
    if may and ends > now then
      if not isLive(record) then
        put(job, { kind = 'r', ends = ends, heard = ARGV[1], elapsed = '0', amount = '0', floor = floor })
      elseif record.kind == 'r' and ends > record.ends then
        put(job, { kind = 'r', ends = ends, heard = record.heard, elapsed = record.elapsed, amount = record.amount, floor = record.floor })
      end
    end
  end
  asked[#asked + 1], allowed[#allowed + 1] = job, may
end

local results = {}
for i = 1, #asked do
  results[i] = (allowed[i] and 1 or 0) + (isLive(get(asked[i])) and 2 or 0)
end
write(fields)

local answer = { 'd', digits(live), digits(held), table.concat(results), isOlder and stored[1] or '', isOlder and figures or '' }
if string.find(flags, 'i', 1, true) then
  local all = call('HGETALL', key)
  for i = 1, #all do answer[#answer + 1] = all[i] end
end
return answer
`;
