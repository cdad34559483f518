/** Where a command's logs lie: a folder of archives, one archive in it, or a log's address. */
import { basename, dirname } from "node:path";
import { isOriginOf } from "../archive/checkpoints.ts";
import { CannotLook } from "../finding.ts";
import { folderSource, logsIn } from "../folder.ts";
import { readToken } from "../given.ts";
import { httpSource, isUrl } from "../http/source.ts";
import type { Source } from "../source.ts";

export interface Place {
  logs: string[];
  /** Whether one log was asked for, and not all that are there. */
  one: boolean;
  open(log: string): Promise<Source>;
}

const LOG = /^[0-9a-f]{32}$/;

/** Both `ARCHIVE LOG` and `ARCHIVE/LOG` name one log. Throws `CannotLook` where it is not there. */
export async function openPlace(
  archive: string,
  log: string | undefined,
  tokenFile: string | undefined,
): Promise<Place> {
  if (isUrl(archive)) return remotePlace(archive, log, tokenFile);
  const inside = log === undefined && LOG.test(basename(archive));
  const folder = inside ? dirname(archive) : archive;
  const named = inside ? basename(archive) : log;
  const present = await logsIn(folder);
  if (named !== undefined && !present.includes(named)) {
    throw new CannotLook(`${folder} holds no log ${named}`);
  }
  const logs = named === undefined ? present : [named];
  return { logs, one: named !== undefined, open: async (id) => folderSource(folder, id) };
}

/** The one log that is there; throws `CannotLook` where there are several. */
export async function openOne(
  archive: string,
  tokenFile: string | undefined,
): Promise<{ log: string; source: Source }> {
  const place = await openPlace(archive, undefined, tokenFile);
  const [log = "", ...others] = place.logs;
  if (others.length > 0) throw new CannotLook(`${archive} holds several logs: name one of them`);
  return { log, source: await place.open(log) };
}

/** The keys that are a log's; throws `CannotLook` where none is. */
export function keysOf<K extends { name: string }>(log: string, vkeys: readonly K[]): K[] {
  const own = vkeys.filter(({ name }) => isOriginOf(log, name));
  if (own.length === 0) throw new CannotLook(`no trusted key for log ${log}`);
  return own;
}

async function remotePlace(
  url: string,
  log: string | undefined,
  tokenFile: string | undefined,
): Promise<Place> {
  const token = tokenFile === undefined ? undefined : readToken(tokenFile);
  const remote = await httpSource(url, { token });
  if (log !== undefined && log !== remote.log) {
    throw new CannotLook(`${url} is no address of log ${log}`);
  }
  return { logs: [remote.log], one: true, open: async () => remote.source };
}
