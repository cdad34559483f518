/**
 * Live usage in Redis, changed only by this script: the machine of core/quota/machine.ts once more, in Lua.
 */
import { GONE_MS, JOBS_MAX, STEP_MS, UNHEARD_BELOW } from "../core/quota/jobs.ts";
import { LIVE_KEPT } from "./live-script-kept.ts";
import { LIVE_USUAL } from "./live-script-usual.ts";

/** Instead of an answer: the body of the caller's figures is not kept, and is to come along. Nothing has changed. */
export const BODY_WANTED = "f";

/**
 * KEYS: the namespace. ARGV: a text of words, and where they are needed the figures' body (or nothing), and the
 * ids of settled and looked, with commas. The words: now, asOf, the body's print, startBound and runBound, since,
 * flags (`f`orce, `i`nspect, `r`ecount, or `m`ore texts; `.`: none, as of bounds); then of each ask `s`, job, end, floor,
 * or `r` (offered: `o`), job, end, amount, elapsedMs, by, or `g`, job, or `n`, job, or `v`, job, by. An end is a whole
 * step, or 0 if it is over.
 *
 * Answers with a text: live, held, per ask a digit (1: allowed, 2: known); or BODY_WANTED. Or with a list: `b`, asOf; `g`,
 * asOf, jobs…; or `d`, that text, `a` where kept figures are newer, else empty, their `f` where it is another, else
 * empty, and with inspect a list of all fields with what they hold.
 */
export const LIVE_SCRIPT = `${LIVE_USUAL}${LIVE_KEPT}
local function within(list)
  local jobs = {}
  for job in gmatch(list, '[^,]+') do jobs[job] = true end
  return jobs
end

-- How many words an ask has.
local SIZES = { s = 4, r = 6, o = 6, g = 2, n = 2, v = 3 }

local function beat(job, ends, amount, elapsed, by, isOffered)
  local record, floor = get(job), '0'
  if not record then
    if count >= ${JOBS_MAX} then return end
  elseif record.kind == 'g' then
    if isOffered or not less(record.elapsed, elapsed) then return end
  elseif record.kind == 'r' then
    floor = record.floor
  else
    local isMore, isLonger = less(record.amount, amount), less(record.elapsed, elapsed)
    if not (isMore or isLonger) then return end
    floor = record.floor
    if not isMore then amount, by = record.amount, record.by end
    if not isLonger then elapsed = record.elapsed end
    if less(ends, record.ends) then ends = record.ends end
  end
  put(job, { kind = 'n', ends = ends, heard = argv[1], elapsed = elapsed, amount = amount, floor = floor, by = by })
end

local function giveUp(job)
  local record = get(job)
  if record and record.kind == 'g' or not record and count >= ${UNHEARD_BELOW} then return end
  local ends = format('%.0f', math.ceil(math.max(record and record.ends or 0, now + ${GONE_MS}) / ${STEP_MS}) * ${STEP_MS})
  local heard, elapsed = record and record.heard or argv[1], record and record.elapsed or '0'
  put(job, { kind = 'g', ends = ends, heard = heard, elapsed = elapsed, amount = '0', floor = '0', by = '-1' })
end

-- Whether a job may start; if so, its reservation is made.
local function mayStart(job, ends, floor)
  local record = get(job)
  local others = record and plus(held, -1, weight(record)) or held
  local may = startBound == '.' or (sub(startBound, 1, 1) ~= '-' and less(others, startBound))
  if not may or ends == '0' then return may end
  if not isLive(record) then
    if record or count < ${JOBS_MAX} then reserve(job, ends, argv[1], floor) end
  elseif record.kind == 'r' and less(record.ends, ends) then
    reserve(job, ends, record.heard, record.floor)
  end
  return may
end

local function hasNew()
  local i = ASKS
  while argv[i] do
    local kind, record = argv[i], get(argv[i + 1])
    if (kind == 'r' or kind == 'o') and not (record and record.kind == 'n') then return true end
    i = i + SIZES[kind]
  end
  return false
end

local function answer()
  if now >= tonumber(lapses) then lapse() end
  if now >= tonumber(first) or (kept and string.find(flags, 'r', 1, true)) then scan() end

  local isOlder = kept and kept ~= asOf and less(asOf, kept) and not string.find(flags, 'f', 1, true)
  local isSame = stored[2] == print
  local others = isOlder and readable(call('HGET', key, 'f'))
  if isOlder then
    local touched, from, ends, start, run = match(others, '^(-?%d+),(-?%d+),(-?%d+),(-?%d*),(-?%d*)\\n')
    readable(touched)
    local behind = now < tonumber(from) or now >= tonumber(ends)
      or (sub(touched, 1, 1) ~= '-' and not less(touched, asOf) and hasNew())
    if behind then
      write()
      return { 'b', kept }
    end
    startBound, runBound = start == '' and '.' or start, run == '' and '.' or run
  elseif kept and kept ~= asOf and less(kept, since) then
    local wasLooked, gap, isOpen = within(looked), { 'g', kept }, false
    for _, job in ipairs(call('HKEYS', key)) do
      if match(job, '^%d') and records[job] ~= false then
        gap[#gap + 1] = job
        isOpen = isOpen or not wasLooked[job]
      end
    end
    if isOpen then
      write()
      return gap
    end
  end

  if not isOlder and (kept or argv[ASKS]) then
    if not isSame and body == '' then
      write()
      return '${BODY_WANTED}'
    end
    if kept ~= asOf then
      for job in pairs(within(settled)) do
        if get(job) then put(job, false) end
      end
      set('a', asOf)
    end
    -- Of who brings it although it is the same, it is kept anew where it was spoilt.
    if body ~= '' and not (isSame and call('HGET', key, 'f') == body) then
      set('f', body)
      set('p', print)
    end
  end

  local i = ASKS
  while argv[i] do
    local kind, job = argv[i], argv[i + 1]
    if (kind == 'r' or kind == 'o') and argv[i + 2] ~= '0' then
      beat(job, argv[i + 2], argv[i + 3], argv[i + 4], argv[i + 5], kind == 'o')
    elseif kind == 'n' then
      giveUp(job)
    elseif kind == 'v' then
      local record = get(job)
      if record and record.by == argv[i + 2] then put(job, false) end
    end
    i = i + SIZES[kind]
  end

  -- No bound: always. One below zero: never.
  local mayRun = runBound == '.' or (sub(runBound, 1, 1) ~= '-' and not less(runBound, live))
  local asked, allowed = {}, {}
  i = ASKS
  while argv[i] do
    local kind, job = argv[i], argv[i + 1]
    local may = kind == 'n' or kind == 'v' or mayRun
    if kind == 's' then may = mayStart(job, argv[i + 2], argv[i + 3]) end
    asked[#asked + 1], allowed[#allowed + 1] = job, may
    i = i + SIZES[kind]
  end

  local results = {}
  for n, job in ipairs(asked) do
    results[n] = isLive(get(job)) and (allowed[n] and '3' or '2') or (allowed[n] and '1' or '0')
  end
  if isDirty or #fields > 0 then write() end

  local done = live .. ',' .. held .. ',' .. table.concat(results)
  local isInspected = string.find(flags, 'i', 1, true)
  if not (isOlder or isInspected) then return done end
  return {
    'd', done, isOlder and kept or '', isOlder and not isSame and others or '', isInspected and call('HGETALL', key) or {}
  }
end

local function turn()
  load()
  return answer()
end

local ok, result = pcall(turn)
if ok then return result end
local text = type(result) == 'table' and result.err or result
if not (string.find(text, 'UNREADABLE', 1, true) or string.find(text, 'WRONGTYPE', 1, true)) then error(result, 0) end
call('DEL', key)
return turn()
`;
