/** Routes bound to the access table: nothing else can be registered, and nothing may be left out. */
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { Problem } from "../core/problem.ts";
import type { Principal } from "../flow/access/grant.ts";
import type { AccessLog } from "../flow/access/log.ts";
import type { Pace } from "../flow/access/pace.ts";
import type { Authenticate } from "../flow/authenticate.ts";
import { spoken } from "../flow/log/failure.ts";
import {
  assertRole,
  type Caller,
  callerOf,
  type GuardedRoute,
  type OpenRoute,
  type PublishedRoute,
  ROUTES,
  type Route,
} from "./access.ts";
import type { Unread } from "./body.ts";
import { OPERATIONS } from "./operations.ts";
import { errorResponse, problemDocument, respond } from "./problem.ts";
import { isOfMachines, isRecorded, rowOf, useOf } from "./recorded.ts";
import type { Room } from "./room.ts";

export interface Ask extends Unread {
  /** Of the path's pattern. */
  param(name: string): string;
  /** Every name once. @throws Problem `invalid-request` for one that comes twice */
  query(): Record<string, string>;
}

export type OpenHandler = (ask: Ask) => Promise<Response> | Response;
export type GuardedHandler = (ask: Ask, caller: Caller) => Promise<Response> | Response;

export interface Observer {
  /** After each answer: its route as declared, not the path, which anyone can make up. */
  answered(route: Route | "none", status: number, elapsedMs: number): void;
  /** An error that its caller sees as a bare id. */
  failed(error: unknown, id: string): void;
  /** An error that will pass: its caller sees `busy`. */
  postponed(error: unknown): void;
  /** What ended an answer that was under way. */
  brokenOff(error: unknown): void;
}

type Environment = { Bindings: HttpBindings };

const NOBODY = { id: "", issuer: "", subject: "", grants: [] };

/** Of the one who asks, before anything is done for them. */
export interface Gate {
  authenticate: Authenticate;
  /** By the principal's id: of people and programs that ask now and then … */
  callers: Pace;
  /** … and of machines that ask all the time. */
  machines: Pace;
  accesses: AccessLog;
}

export class Router {
  readonly #app = new Hono<Environment>();
  readonly #registered = new Set<Route>();
  readonly #gate: Gate;
  readonly #observer: Observer;
  readonly #room: Room;

  constructor(parts: { gate: Gate; observer: Observer; room: Room }) {
    this.#gate = parts.gate;
    this.#observer = parts.observer;
    this.#room = parts.room;
  }

  open(route: OpenRoute, handle: OpenHandler): void {
    this.#register(route, (ask) => {
      assertQuery(route, ask);
      return handle(ask);
    });
  }

  guarded(route: GuardedRoute, handle: GuardedHandler): void {
    this.#register(route, async (ask) => {
      const { authenticate, callers, machines } = this.#gate;
      const principal = await authenticate(ask.incoming.headers.authorization);
      await (isOfMachines(route) ? machines : callers)(principal.id);
      return await this.#recorded(route, ask, principal, async (caller) => {
        assertRole(caller);
        assertQuery(route, ask);
        return await handle(ask, caller);
      });
    });
  }

  /** The caller may have no grant at all: whether the log is public is for the handler to ask. */
  published(route: PublishedRoute, handle: GuardedHandler): void {
    this.#register(route, async (ask) => {
      const { accesses, authenticate, machines } = this.#gate;
      const { authorization } = ask.incoming.headers;
      const answered = async (caller: Caller): Promise<Response> => {
        assertQuery(route, ask);
        return await handle(ask, caller);
      };
      if (authorization === undefined) return await answered(callerOf(route, NOBODY, accesses));
      const principal = await authenticate(authorization);
      // A whole log is read tile by tile.
      await machines(principal.id);
      return await this.#recorded(route, ask, principal, answered);
    });
  }

  /** @throws Error when a declared route has no handler */
  finish(): Hono<Environment> {
    const left = ROUTES.filter((route) => !this.#registered.has(route));
    if (left.length > 0) throw new Error(`router: nobody answers ${left.join(", ")}`);
    this.#app.notFound((c) => {
      const allow = allowedMethods(c.req.path);
      this.#observer.answered("none", allow === "" ? 404 : 405, 0);
      if (allow === "") return respond(problemDocument("not-found"));
      return respond(problemDocument("method-not-allowed"), { allow });
    });
    return this.#app;
  }

  /** Errors end here and not in hono's onError, so that every answer is counted in one place. */
  #register(route: Route, handle: OpenHandler): void {
    this.#registered.add(route);
    const { method, path } = split(route);
    this.#app.on(method, path.replace(REST, `${REST}{.+}`), async (c) => {
      const start = performance.now();
      const response = await this.#told(() => handle(askOf(c, this.#room)));
      this.#observer.answered(route, response.status, performance.now() - start);
      return response;
    });
  }

  /** The answer, once it is written down who gets it: that comes last, when it is known which it is. */
  async #recorded(
    route: GuardedRoute | PublishedRoute,
    ask: Ask,
    principal: Principal,
    handle: (caller: Caller) => Promise<Response>,
  ): Promise<Response> {
    const { accesses } = this.#gate;
    const caller = callerOf(route, principal, accesses);
    const response = await this.#told(() => handle(caller));
    const row = rowOf(route, ask, caller, response);
    const use = useOf(principal, row.log);
    if (isRecorded(route, ask)) await accesses.record(row, use);
    else if (use !== undefined) accesses.used(use);
    return response;
  }

  async #told(handle: () => Promise<Response> | Response): Promise<Response> {
    try {
      return await handle();
    } catch (error) {
      const told = spoken(error);
      if (told !== error) this.#observer.postponed(error);
      return errorResponse(told, this.#observer.failed);
    }
  }
}

/** A route that has a query holds it against its shape itself. @throws Problem `invalid-request` */
function assertQuery(route: Route, { query }: Ask): void {
  if (OPERATIONS[route].query !== undefined) return;
  const members = Object.keys(query());
  if (members.length > 0) throw new Problem("invalid-request", { members });
}

function askOf(c: Context<Environment>, room: Room): Ask {
  return {
    incoming: c.env.incoming,
    room,
    param: (name) => c.req.param(name) ?? "",
    query: () => {
      const values = Object.entries(c.req.queries());
      const twice = values.filter(([, all]) => all.length > 1).map(([name]) => name);
      if (twice.length > 0) throw new Problem("invalid-request", { members: twice });
      return Object.fromEntries(values.map(([name, [value = ""]]) => [name, value]));
    },
  };
}

/** The one parameter that is all of the rest, slashes too. */
const REST = ":path";

const PATTERNS = ROUTES.map((route) => {
  const { method, path } = split(route);
  const pattern = path.replace(REST, ".+").replaceAll(/:[a-z]+/g, "[^/]+");
  return { method, pattern: new RegExp(`^${pattern}$`) };
});

/** For the header Allow of a 405 (RFC 9110 §15.5.6); empty for a path that takes no method at all. */
function allowedMethods(path: string): string {
  const methods = PATTERNS.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
  return methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).join(", ");
}

function split(route: Route): { method: string; path: string } {
  const [method = "", path = ""] = route.split(" ");
  return { method, path };
}
