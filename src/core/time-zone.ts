/** Other time zones are for showing: months, days and sums are those of UTC, wherever they are read. */

/** Of the IANA database, as this process knows it. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false; // a RangeError is how Intl says no
  }
}

/** An instant as clocks show it there: `2026-11-01 14:00:00.000 GMT+14:00`. */
export function zonedText(instant: string, timeZone: string): string {
  const parts = new Map(
    format(timeZone)
      .formatToParts(new Date(instant))
      .map(({ type, value }) => [type, value]),
  );
  const [year, month, day, hour, minute, second, fraction] = PARTS.map((part) => parts.get(part));
  const time = `${hour}:${minute}:${second}.${fraction}`;
  return `${year}-${month}-${day} ${time} ${parts.get("timeZoneName")}`;
}

const PARTS = ["year", "month", "day", "hour", "minute", "second", "fractionalSecond"] as const;

function format(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat("en", {
    timeZone,
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    timeZoneName: "longOffset",
  });
}
