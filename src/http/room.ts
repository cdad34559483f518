/**
 * What all bodies that are being read may take together. It is taken as the bytes come, not as they
 * are promised, and given back by a deadline. Where there is no more, whoever has kept the most for the
 * longest makes room: a sender that is slow, or holds back its end, is turned away before others are.
 * In memory it is twice as much at the most; with the texts that are on their way beside it
 * (flow/report/intake.ts) that is 96 MiB of the 512 that the service may take.
 */
import { Problem } from "../core/problem.ts";

export interface Room {
  /** How long a body may take from its first byte. */
  readonly ms: number;
  /**
   * A body comes in.
   *
   * @param peer the address that it comes from; behind a balancer all have one
   * @param displaced called if it has to make room: nothing of it is kept any more
   */
  enter(peer: string, displaced: (problem: Problem) => void): Place;
}

export interface Place {
  /** @throws Problem `busy` */
  take(bytes: number): void;
  /** Gives back all that was taken. */
  leave(): void;
}

interface Body {
  readonly peer: string;
  readonly displaced: (problem: Problem) => void;
  bytes: number;
  /** Bytes held, times milliseconds, up to `at`. */
  cost: number;
  at: number;
}

const BYTES_MAX = 32 * 1024 * 1024;
/** Where bodies end that have grown past `SMALL_MAX`: what is above is for the small ones. */
const GROWN_MAX = 24 * 1024 * 1024;
/** Some fifty reports, or any statement of a key. */
const SMALL_MAX = 64 * 1024;
/** A full batch of 4 MiB at 3.4 Mbit/s. */
const MS_MAX = 10_000;
/** A full batch that has stood still for a quarter of a second, or came at less than 64 Mbit/s. */
const COST_MAX = 1024 * 1024 * 1_000;

export function openRoom(
  limits: { bytes?: number; grown?: number; small?: number; ms?: number; cost?: number } = {},
  now: () => number = () => performance.now(),
): Room {
  const { bytes: bytesMax = BYTES_MAX, grown = GROWN_MAX, small = SMALL_MAX, ms = MS_MAX } = limits;
  const { cost: costMax = COST_MAX } = limits;
  const bodies = new Set<Body>();
  const held = new Map<string, number>();
  let taken = 0;

  function add(body: Body, bytes: number): void {
    const ofPeer = (held.get(body.peer) ?? 0) + bytes;
    if (ofPeer === 0) held.delete(body.peer);
    else held.set(body.peer, ofPeer);
    body.bytes += bytes;
    taken += bytes;
  }

  function leave(body: Body): void {
    if (bodies.delete(body)) add(body, -body.bytes);
  }

  /** One that is slow, or whose peer has more than half of all; of several that of the largest peer. */
  function giving(to: Body, at: number): Body | undefined {
    const costOf = (body: Body): number => body.cost + body.bytes * (at - body.at);
    const least = Math.max(costMax, costOf(to));
    let found: { body: Body; ofPeer: number; cost: number } | undefined;
    for (const body of bodies) {
      const ofPeer = held.get(body.peer) ?? 0;
      const cost = costOf(body);
      const gives = cost > least || (body.peer !== to.peer && ofPeer > bytesMax / 2);
      if (!gives || body === to || body.bytes === 0) continue;
      const more = found === undefined || ofPeer > found.ofPeer;
      if (more || (ofPeer === found?.ofPeer && cost > found.cost)) found = { body, ofPeer, cost };
    }
    return found?.body;
  }

  return {
    ms,
    enter(peer, displaced) {
      const body: Body = { peer, displaced, bytes: 0, cost: 0, at: now() };
      bodies.add(body);
      return {
        take(bytes) {
          const at = now();
          body.cost += body.bytes * (at - body.at);
          body.at = at;
          const max = body.bytes + bytes > small ? grown : bytesMax;
          while (taken + bytes > max) {
            const out = giving(body, at);
            if (out === undefined) throw new Problem("busy");
            leave(out);
            out.displaced(new Problem("busy"));
          }
          add(body, bytes);
        },
        leave: () => leave(body),
      };
    },
  };
}
