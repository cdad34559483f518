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
 * KEYS: namespaces, of a Cluster one. ARGV: of each, how many words it has, and these: now, asOf, readAt, what is in `f`, startBound
 * and runBound (empty: none), since, settled and looked (ids with commas), flags (`f`orce, `i`nspect, `r`ecount); then of each ask `s`,
 * job, until, floor, or `r`, job, until, amount, elapsedMs, or `g`, job, or `n`, job.
 *
 * Answers for each with one text: live, held, per ask a digit (1: allowed, 2: known). Or with a list: `b`, asOf; `g`, asOf, jobs…; or
 * `d`, that text, `a`, `r` and `f` where those kept hold, else empty, and with inspect all fields with what they hold.
 */
export const LIVE_SCRIPT = `
local call, sub, match, format = redis.call, string.sub, string.match, string.format
local ASKS, NEVER = 11, '9007199254740991'
-- Of the namespace whose turn it is.
local key, argv, asOf, body, startBound, runBound, now, flags
local stored, kept, live, held, first, last, fetched
-- Of each job that was looked at, its record, or false; which of them changed.
local records, dirty, isDirty

local function load()
  asOf, body, startBound, runBound = argv[2], argv[4], argv[5], argv[6]
  now, flags = tonumber(argv[1]), argv[10]
  -- The record of the first job that is asked about comes along: most commands ask about one.
  local job = argv[ASKS + 1] or 'a'
  stored = call('HMGET', key, 'a', 'f', 'l', 'h', 'e', 'z', job)
  kept = stored[1]
  live, held, first, last = stored[3] or '0', stored[4] or '0', stored[5] or NEVER, stored[6] or '0'
  records, dirty, isDirty, fetched = {}, {}, false, { [job] = stored[7] }
end

-- Decimal texts without sign and leading zeros.
local function less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
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
  local kind, ends, heard, elapsed, amount, floor = match(text, '^(%a),(%d+),(%d+),(%d+),(%d+),(%d+)$')
  return { kind = kind, ends = ends, heard = heard, elapsed = elapsed, amount = amount, floor = floor }
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
  if sign == 1 and less(record.ends, first) then first = record.ends end
  if sign == 1 and less(last, record.ends) then last = record.ends end
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
  live, held, first, last = '0', '0', NEVER, '0'
  for i = 1, #all, 2 do
    local job = all[i]
    if match(job, '^%d') then
      local record = parse(all[i + 1])
      if tonumber(record.ends) <= now then
        records[job], dirty[job], isDirty = false, true, true
      else
        records[job] = record
        count(1, record)
      end
    end
  end
end

local SUMS = { 'l', 'h', 'e', 'z' }

-- Writes the fields and what else changed; a key that is written for an ask lives on.
local function write(fields)
  local gone = {}
  for job in pairs(dirty) do
    local record = records[job]
    if record then
      fields[#fields + 1] = job
      fields[#fields + 1] = record.kind .. ',' .. record.ends .. ',' .. record.heard
        .. ',' .. record.elapsed .. ',' .. record.amount .. ',' .. record.floor
    else
      gone[#gone + 1] = job
    end
  end
  if isDirty then
    for i, text in ipairs({ live, held, first, last }) do
      if text ~= stored[i + 2] then fields[#fields + 1], fields[#fields + 2] = SUMS[i], text end
    end
  end
  -- What Lua unpacks at once is bounded.
  for i = 1, #fields, 1000 do call('HSET', key, unpack(fields, i, math.min(i + 999, #fields))) end
  for i = 1, #gone, 1000 do call('HDEL', key, unpack(gone, i, math.min(i + 999, #gone))) end
  if #fields > 0 and argv[ASKS] then
    call('PEXPIRE', key, format('%.0f', math.max(tonumber(last) - now, 0) + ${SLACK_MS}))
  end
end

local function within(list)
  local set = {}
  for job in string.gmatch(list, '[^,]+') do set[job] = true end
  return set
end

-- How many words an ask has.
local SIZES = { s = 4, r = 5, g = 2, n = 2 }

local function answer()
  if now >= tonumber(first) or (kept and string.find(flags, 'r', 1, true)) then
    scan()
    isDirty = true
  end

  local isOlder = kept and kept ~= asOf and less(asOf, kept) and not string.find(flags, 'f', 1, true)
  if isOlder then
    local touched, from, ends, start, run = match(stored[2], '^(-?%d+),(-?%d+),(-?%d+),(-?%d*),(-?%d*)')
    local behind = now < tonumber(from) or now >= tonumber(ends)
    if sub(touched, 1, 1) ~= '-' and not less(touched, asOf) then
      local i = ASKS
      while argv[i] do
        behind = behind or (argv[i] == 'r' and not get(argv[i + 1]))
        i = i + SIZES[argv[i]]
      end
    end
    if behind then
      write({})
      return { 'b', kept }
    end
    startBound, runBound = start, run
  elseif kept and kept ~= asOf and less(kept, argv[7]) then
    local looked, gap, isOpen = within(argv[9]), { 'g', kept }, false
    scan()
    for job, record in pairs(records) do
      if isLive(record) then
        gap[#gap + 1] = job
        isOpen = isOpen or not looked[job]
      end
    end
    if isOpen then
      write({})
      return gap
    end
  end

  local fields = {}
  if not isOlder and (kept ~= asOf or stored[2] ~= body) then
    if kept ~= asOf then
      for job in pairs(within(argv[8])) do
        if get(job) then put(job, false) end
      end
    end
    if kept or argv[ASKS] then
      fields = { 'a', asOf, 'r', argv[3] }
      if stored[2] ~= body then fields[5], fields[6] = 'f', body end
    end
  end

  local i = ASKS
  while argv[i] do
    local kind, job = argv[i], argv[i + 1]
    if kind == 'n' then
      local record = get(job)
      if isLive(record) then
        put(job, { kind = 'g', ends = record.ends, heard = record.heard, elapsed = record.elapsed, amount = '0', floor = '0' })
      end
    elseif kind == 'r' then
      local record, ends, amount, elapsed = get(job), argv[i + 2], argv[i + 3], argv[i + 4]
      if tonumber(ends) > now and (not record or record.kind == 'r' or less(record.elapsed, elapsed)) then
        local floor = record and record.floor or '0'
        put(job, { kind = 'n', ends = ends, heard = argv[1], elapsed = elapsed, amount = amount, floor = floor })
      end
    end
    i = i + SIZES[kind]
  end

  -- No bound: always. One below zero: never.
  local mayRun = runBound == '' or (sub(runBound, 1, 1) ~= '-' and not less(runBound, live))
  local asked, allowed = {}, {}
  i = ASKS
  while argv[i] do
    local kind, job = argv[i], argv[i + 1]
    local may = kind == 'n' or mayRun
    if kind == 's' then
      local record, ends = get(job), argv[i + 2]
      local others = record and plus(held, -1, weight(record)) or held
      may = startBound == '' or (sub(startBound, 1, 1) ~= '-' and less(others, startBound))
      if may and tonumber(ends) > now then
        if not isLive(record) then
          put(job, { kind = 'r', ends = ends, heard = argv[1], elapsed = '0', amount = '0', floor = argv[i + 3] })
        elseif record.kind == 'r' and less(record.ends, ends) then
          put(job, { kind = 'r', ends = ends, heard = record.heard, elapsed = '0', amount = '0', floor = record.floor })
        end
      end
    end
    asked[#asked + 1], allowed[#allowed + 1] = job, may
    i = i + SIZES[kind]
  end

  local results = ''
  for n, job in ipairs(asked) do
    results = results .. (isLive(get(job)) and (allowed[n] and '3' or '2') or (allowed[n] and '1' or '0'))
  end
  if isDirty or #fields > 0 then write(fields) end

  local done = live .. ',' .. held .. ',' .. results
  local isInspected = string.find(flags, 'i', 1, true)
  if not (isOlder or isInspected) then return done end
  local parts = { 'd', done, '', '', '' }
  if isOlder then parts[3], parts[4], parts[5] = kept, call('HGET', key, 'r'), stored[2] end
  if isInspected then
    for _, text in ipairs(call('HGETALL', key)) do parts[#parts + 1] = text end
  end
  return parts
end

local answers, from = {}, 1
for n, name in ipairs(KEYS) do
  key, argv = name, {}
  for i = 1, tonumber(ARGV[from]) do argv[i] = ARGV[from + i] end
  from = from + #argv + 1
  load()
  answers[n] = answer()
end
return answers
`;
