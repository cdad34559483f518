/**
 * What nearly every call is, at the very top of the script: one job is asked about, by figures that are kept
 * already, where nothing ends now. It has the rules of live-script.ts for that once more, in as few steps as
 * there are, and leaves whatever else there is to what follows; the executions property holds the two to each other.
 */
import { JOBS_MAX } from "../core/quota/jobs.ts";
import { SLACK_MS } from "./live-script-kept.ts";

/** Letters, of some thirty jobs. */
const LIST_MAX = 256;

/** Lua: returns the answer, or goes on. To make functions, to call Redis and to write numbers is what takes time. */
export const LIVE_USUAL = `
local call, sub, match, gmatch, format = redis.call, string.sub, string.match, string.gmatch, string.format
local key = KEYS[1]

-- Decimal texts without sign and leading zeros.
local function less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

-- A list is read and written with each that is added to it, so what grew long is put aside.
local function listed(ends, jobs, job)
  if #jobs < ${LIST_MAX} then return jobs .. job .. ',' end
  local aside = (match(jobs, '^=(%d+)') or 0) + 1
  call('HSET', key, 'q' .. ends .. ',' .. aside, jobs)
  return '=' .. aside .. ',' .. job .. ','
end

local function usual()
  -- No part of these can be matched in two ways: what does not match is found out in one pass.
  local now, asOf, print, startBound, runBound, since, kind, job, rest = match(ARGV[1],
    '^(%d+) (%d+) (%S+) (%S+) (%S+) (%d+) %. ([srg]) (%d+)([%d ]*)$')
  if not now then return end
  local ends, amount, elapsed, by
  if kind == 's' then ends, amount = match(rest, '^ (%d+) (%d+)$')
  elseif kind == 'r' then ends, amount, elapsed, by = match(rest, '^ (%d+) (%d+) (%d+) (%d+)$') end
  if kind ~= 'g' and not ends or ends == '0' then return end
  local stored = redis.pcall('HMGET', key, 'p', 'a', 's', job, kind == 's' and 'q' .. ends or 'q')
  local kept, sums, record = stored[2], stored[3], stored[4]
  if stored[1] ~= print or not (kept and sums) then return end
  if kept ~= asOf and (less(asOf, kept) or less(kept, since)) then return end
  local live, held, count, lapses, first, last = match(sums, '^(%d+),(%d+),(%d+),(%d+),(%d+),(%d+)$')
  -- Sums of numbers of 15 digits are whole.
  if not live or #held > 15 or not (less(now, lapses) and less(now, first)) then return end

  local new, queue, jobs = nil, 'q', nil
  local may, isKnown, before = true, record and sub(record, 1, 1) ~= 'g', last
  if kind == 's' then
    local floor = amount
    jobs, queue = stored[5], 'q' .. ends
    may = startBound == '.' or (sub(startBound, 1, 1) ~= '-' and less(held, startBound))
    if record or (may and (not jobs or #floor > 15 or tonumber(count) >= ${JOBS_MAX})) then return end
    if may then
      held, count, isKnown = format('%.0f', held + floor), count + 1, true
      new, jobs = 'r,' .. ends .. ',' .. now .. ',0,0,' .. floor .. ',-1', listed(ends, jobs, job)
    end
  elseif kind == 'r' then
    local till, longest, most, floor, speaker = '0', '', '0', '0', by
    if not record then
      if tonumber(count) >= ${JOBS_MAX} then return end
      count = count + 1
    elseif sub(record, 1, 1) == 'r' then
      floor = match(record, '^r,%d+,%d+,0,0,(%d+),%-1$')
    else
      till, longest, most, floor, speaker = match(record, '^n,(%d+),%d+,(%d+),(%d+),(%d+),(-?%d+)$')
    end
    if not floor or #amount > 15 then return end
    local isMore, isLonger = less(most, amount), less(longest, elapsed)
    if isMore then
      live = format('%.0f', live + (amount - most))
      if less(floor, amount) then held = format('%.0f', held + (amount - (less(floor, most) and most or floor))) end
    else
      amount, by = most, speaker
    end
    if not isLonger then elapsed = longest end
    if less(ends, till) then ends = till end
    if isMore or isLonger then
      isKnown = true
      if less(ends, first) then first = ends end
      new = 'n,' .. ends .. ',' .. now .. ',' .. elapsed .. ',' .. amount .. ',' .. floor .. ',' .. by
    end
  end

  if kept ~= asOf then call('HSET', key, 'a', asOf) end
  if new then
    if less(last, ends) then last = ends end
    sums = live .. ',' .. held .. ',' .. count .. ',' .. lapses .. ',' .. first .. ',' .. last
    if jobs then call('HSET', key, 's', sums, job, new, queue, jobs) else call('HSET', key, 's', sums, job, new) end
  end
  -- A key lives on by what was asked before, until its last job ends.
  if (new or kept ~= asOf) and (last ~= before or not less(now, last)) then
    call('PEXPIRE', key, format('%.0f', math.max(last - now, 0) + ${SLACK_MS}))
  end
  if kind ~= 's' then may = runBound == '.' or (sub(runBound, 1, 1) ~= '-' and not less(runBound, live)) end
  return live .. ',' .. held .. ',' .. (isKnown and (may and '3' or '2') or (may and '1' or '0'))
end

local answered = usual()
if answered then return answered end
`;
