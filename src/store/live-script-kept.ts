/**
 * The part of the script that reads and writes what is kept: of one namespace one Redis hash, so that eviction,
 * expiry and loss take all or nothing.
 *
 * | field | holds |
 * | --- | --- |
 * | `a` | asOf |
 * | `f` | touched, from, until, startBound, runBound; then a newline and the text |
| `p` | the print of that: by it a caller's figures are known to be the same |
 * | `s` | over all jobs: the sum of their amounts, that of what starts are held to, how many there are; then ends: no reservation's is before the first of them, no other's before the second, and none after the third |
 * | `q` | ends of reservations |
 * | `q` and an end | jobs that were reserved until then: the last of them, after `=` and the number of texts before, if there are any |
 * | `q`, an end, a comma and 1 or more | those texts |
 * | a job's id | `r`eserved, ru`n`ning or `g`one; until, heardAt, elapsedMs, amount, floor, by |
 *
 * Sums are kept rather than formed, so that a decision costs what it asks, however many jobs there are. Reservations
 * end all the time, and are looked up by their end; all else is read through when some of it ends, once an hour at
 * most, as ends are whole hours. A number of Lua is a double: quantities are decimal texts, added in parts that stay
 * whole numbers below 2^53. A key that holds anything else is dropped, and begun anew.
 */
/** A key outlives the last of its jobs, or the last thing that was asked of it, by a day. */
export const SLACK_MS = 86_400_000;

/** Lua: `load` comes first, and `write` last. */
export const LIVE_KEPT = `
local NEVER, ASKS = '9007199254740991', 8
local argv = {}
for word in gmatch(ARGV[1], '%S+') do argv[#argv + 1] = word end
local asOf, print, startBound, runBound, since, flags = argv[2], argv[3], argv[4], argv[5], argv[6], argv[7]
local now, body, settled, looked = tonumber(argv[1]), ARGV[2] or '', ARGV[3] or '', ARGV[4] or ''
local stored, kept, fetched, live, held, count, lapses, first, last, queue
-- Of each job that was looked at, its record, or false; which of them changed; what else is written and deleted.
local records, dirty, isDirty, queued, fields, gone

-- Caught below. Nothing is written before all has been read.
local function readable(value)
  return value or error('UNREADABLE')
end

local function load()
  -- The record of the first job that is asked about comes along: most commands ask about one.
  local job = argv[ASKS + 1] or 'a'
  stored = call('HMGET', key, 'a', 'p', 's', 'q', job)
  kept, queue = stored[1], stored[4] or ''
  readable(not kept or (match(kept, '^%d+$') and stored[2]))
  readable(kept or not stored[3])
  live, held, count, lapses, first, last =
    match(stored[3] or '0,0,0,' .. NEVER .. ',' .. NEVER .. ',0', '^(%d+),(%d+),(%d+),(%d+),(%d+),(%d+)$')
  count = tonumber(readable(count))
  records, dirty, isDirty, queued, fields, gone, fetched = {}, {}, false, {}, {}, {}, { [job] = stored[5] }
end

-- one + sign * other, which is not below zero. To write a number takes longer than all else of it.
local function plus(one, sign, other)
  if other == '0' then return one end
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
  local kind, ends, heard, elapsed, amount, floor, by =
    match(text, '^([rng]),(%d+),(%d+),(%d+),(%d+),(%d+),(-?%d+)$')
  readable(kind)
  return { kind = kind, ends = ends, heard = heard, elapsed = elapsed, amount = amount, floor = floor, by = by }
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

local function add(sign, record)
  live, held, count = plus(live, sign, record.amount), plus(held, sign, weight(record)), count + sign
  if sign == 1 and record.kind ~= 'r' and less(record.ends, first) then first = record.ends end
  if sign == 1 and less(last, record.ends) then last = record.ends end
end

local function put(job, record)
  local before = get(job)
  if before then add(-1, before) end
  if record then add(1, record) end
  records[job], dirty[job], isDirty = record, true, true
end

local function reserve(job, ends, heard, floor)
  put(job, { kind = 'r', ends = ends, heard = heard, elapsed = '0', amount = '0', floor = floor, by = '-1' })
  queued[ends] = listed(ends, queued[ends] or call('HGET', key, 'q' .. ends) or '', job)
  if not string.find(',' .. queue, ',' .. ends .. ',', 1, true) then queue = queue .. ends .. ',' end
  if less(ends, lapses) then lapses = ends end
end

-- Reservations that are over; a job that was heard of meanwhile is none any more.
local function lapse()
  local rest = ''
  lapses = NEVER
  for ends in gmatch(queue, '%d+') do
    if tonumber(ends) <= now then
      local jobs = call('HGET', key, 'q' .. ends) or ''
      gone[#gone + 1] = 'q' .. ends
      for i = 1, tonumber(match(jobs, '^=(%d+)') or 0) do
        jobs = jobs .. (call('HGET', key, 'q' .. ends .. ',' .. i) or '')
        gone[#gone + 1] = 'q' .. ends .. ',' .. i
      end
      for job in gmatch(jobs, '[^,]+') do
        local record = get(job)
        if record and record.kind == 'r' and record.ends == ends then put(job, false) end
      end
    else
      rest = rest .. ends .. ','
      if less(ends, lapses) then lapses = ends end
    end
  end
  queue, isDirty = rest, true
end

-- Reads all records, and with them forms the sums anew.
local function scan()
  local all = call('HGETALL', key)
  live, held, count, first, last = '0', '0', 0, NEVER, '0'
  for i = 1, #all, 2 do
    local job = all[i]
    if match(job, '^%d') then
      local record = parse(all[i + 1])
      if tonumber(record.ends) <= now then
        records[job], dirty[job] = false, true
      else
        records[job] = record
        add(1, record)
      end
    end
  end
  isDirty = true
end

local function set(field, text)
  fields[#fields + 1], fields[#fields + 2] = field, text
end

-- A key that is written for an ask lives on.
local function write()
  for job in pairs(dirty) do
    local record = records[job]
    if record then
      set(job, record.kind .. ',' .. record.ends .. ',' .. record.heard .. ',' .. record.elapsed
        .. ',' .. record.amount .. ',' .. record.floor .. ',' .. record.by)
    else
      gone[#gone + 1] = job
    end
  end
  if isDirty then
    local sums = live .. ',' .. held .. ',' .. format('%.0f', count) .. ',' .. lapses .. ',' .. first .. ',' .. last
    if sums ~= stored[3] then set('s', sums) end
    if queue ~= (stored[4] or '') then set('q', queue) end
    for ends, jobs in pairs(queued) do set('q' .. ends, jobs) end
  end
  -- What Lua unpacks at once is bounded.
  for i = 1, #fields, 1000 do call('HSET', key, unpack(fields, i, math.min(i + 999, #fields))) end
  for i = 1, #gone, 1000 do call('HDEL', key, unpack(gone, i, math.min(i + 999, #gone))) end
  if #fields > 0 and argv[ASKS] then
    call('PEXPIRE', key, format('%.0f', math.max(tonumber(last) - now, 0) + ${SLACK_MS}))
  end
end
`;
