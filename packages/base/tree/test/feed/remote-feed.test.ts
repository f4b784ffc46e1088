import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { beforeEach, describe, expect, test } from "vitest";
import type { Op, OpResult, Session, Stat } from "../../src/contract.ts";
import { BadVersion, CallEnded, ConnectionLost, NotAllowed, type TreeError } from "../../src/errors.ts";
import type { Found, Port, PortEvent, Reply } from "../../src/remote/port.ts";
import { RemoteTree } from "../../src/remote/remote-tree.ts";
import { Follower } from "../suite/index.ts";

/** A connection played by hand: calls wait until the test answers them. */
class ScriptedPort implements Port {
  readonly capabilities = { shared: true, durable: true, maxRequestBytes: 1_000 };
  readonly calls: { readonly what: string; readonly reply: Reply<never> }[] = [];
  state: Session = { id: 1n, epoch: 1, state: "connected", trustedUntil: 0 };
  readonly listeners = new Set<(session: Session) => void>();
  event: (event: PortEvent) => void = () => {};
  ready: () => void = () => {};

  session(): Session {
    return this.state;
  }
  onSession(listener: (session: Session) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  clockOffset(): number {
    return 0;
  }
  write(ops: readonly Op[], reply: Reply<readonly OpResult[]>): void {
    this.#add(`write ${ops.map(({ path }) => path).join()}`, reply);
  }
  get(path: string, reply: Reply<Found>): void {
    this.#add(`get ${path}`, reply);
  }
  stat(path: string, reply: Reply<Stat>): void {
    this.#add(`stat ${path}`, reply);
  }
  children(path: string, reply: Reply<readonly string[]>): void {
    this.#add(`children ${path}`, reply);
  }
  sync(path: string, reply: Reply<true>): void {
    this.#add(`sync ${path}`, reply);
  }
  watch(_root: string, onEvent: (event: PortEvent) => void, onReady: () => void): () => Promise<void> {
    this.event = onEvent;
    this.ready = onReady;
    return async () => {};
  }
  async close(): Promise<void> {}

  #add(what: string, reply: Reply<never>): void {
    this.calls.push({ what, reply });
  }

  get waiting(): string[] {
    return this.calls.map(({ what }) => what);
  }
  /** Answers the oldest call. */
  answer(value: unknown, error?: TreeError): void {
    this.calls.shift()?.reply(error, value as never);
  }
  become(state: Session["state"]): void {
    this.state = { ...this.state, state };
    for (const tell of this.listeners) tell(this.state);
  }
}

function stat(mzxid: bigint, version: number, numChildren = 0): Stat {
  return {
    czxid: 1n,
    mzxid,
    pzxid: 1n,
    ctime: 0,
    mtime: 0,
    version,
    cversion: 0,
    aversion: 0,
    ephemeralOwner: 0n,
    dataLength: 1,
    numChildren,
  };
}

const data = (text: string) => new TextEncoder().encode(text);
const found = (text: string, mzxid: bigint, version: number, numChildren = 0) => ({
  data: data(text),
  stat: stat(mzxid, version, numChildren),
});

let port: ScriptedPort;
let clock: VirtualClock;
let tree: RemoteTree;
let follower: Follower;

/** A feed on /r that has told version 0 of it, at transaction 10. */
beforeEach(() => {
  port = new ScriptedPort();
  clock = new VirtualClock();
  tree = new RemoteTree(port, { clock, random: seededRandom(1), resyncSpreadMs: 0 });
  follower = new Follower();
  tree.feed("/r", follower.options());
  port.ready();
  port.answer(found("0", 10n, 0));
  expect(follower.said()).toEqual(["put /r=0", "synced"]);
});

function set(version?: number): Promise<unknown> {
  const promise = tree.set("/r", data("own"), version === undefined ? {} : { version });
  promise.catch(() => undefined);
  return promise;
}

describe("an event on a path with a write of ours in flight", () => {
  test("is dropped when the reply comes", () => {
    set();
    port.event({ type: "changed", path: "/r" });
    port.answer([{ op: "set", stat: stat(11n, 1) }]);
    expect(follower.said().at(-1)).toBe("put /r=own");
    expect(port.waiting).toEqual([]);
  });

  test("is looked into when the write was refused", () => {
    set(0);
    port.event({ type: "changed", path: "/r" });
    expect(port.waiting).toEqual(["write /r"]);
    port.answer(undefined, new BadVersion("/r"));
    expect(port.waiting).toEqual(["get /r"]);
    port.answer(found("theirs", 11n, 1));
    expect(follower.said().at(-1)).toBe("put /r=theirs");
  });

  test("stays parked while another write of ours is in flight", () => {
    set(0);
    set(1);
    port.event({ type: "changed", path: "/r" });
    port.answer(undefined, new BadVersion("/r"));
    expect(port.waiting).toEqual(["write /r"]);
    port.event({ type: "changed", path: "/r" });
    port.answer([{ op: "set", stat: stat(12n, 2) }]);
    expect(follower.said().slice(2)).toEqual(["put /r=own"]);
    expect(port.waiting).toEqual([]);
  });

  test("is looked into when its outcome is unknown", () => {
    set();
    port.answer(undefined, new CallEnded("set /r", "unknown"));
    expect(port.waiting).toEqual(["get /r"]);
  });

  test("a deletion by another client is reported after our write was refused", () => {
    set(0);
    port.event({ type: "deleted", path: "/r" });
    expect(follower.picture.has("/r")).toBe(true);
    port.answer(undefined, new BadVersion("/r"));
    port.answer(undefined);
    expect(follower.said().at(-1)).toBe("remove /r");
  });
});

describe("a sequential create", () => {
  test("is known by its prefix until its reply names it", () => {
    tree.create("/r/s-", data("own"), { sequential: true });
    port.event({ type: "created", path: "/r/s-0000000007" });
    port.answer([{ op: "create", path: "/r/s-0000000007", stat: stat(11n, 0) }]);
    expect(follower.said().slice(2)).toEqual(["put /r/s-0000000007=own"]);
    expect(port.waiting).toEqual([]);
  });

  test("another's with the same prefix waits for the writes before it, not for those after", () => {
    const create = () => void tree.create("/r/s-", data("own"), { sequential: true });
    create();
    port.event({ type: "created", path: "/r/s-0000000003" });
    create();
    port.event({ type: "created", path: "/r/s-0000000004" });
    expect(port.waiting).toEqual(["write /r/s-", "write /r/s-"]);
    port.answer([{ op: "create", path: "/r/s-0000000002", stat: stat(20n, 0) }]);
    // Another write of ours is in flight, but it was begun after the first event, so that event is not its own.
    expect(port.waiting).toEqual(["write /r/s-", "get /r/s-0000000003"]);
    port.answer([{ op: "create", path: "/r/s-0000000004", stat: stat(22n, 0) }]);
    port.answer(found("3", 21n, 0));
    expect(port.waiting).toEqual([]);
    expect(follower.said(2).sort()).toEqual([
      "put /r/s-0000000002=own",
      "put /r/s-0000000003=3",
      "put /r/s-0000000004=own",
    ]);
  });

  test("a sequential create of ours holds back no change and no end of what others made before", () => {
    void tree.create("/r/s-", data("own"), { sequential: true });
    port.event({ type: "changed", path: "/r/s-0000000001" });
    expect(port.waiting).toEqual(["write /r/s-", "get /r/s-0000000001"]);
  });

  test("another's with the same prefix is only delayed", () => {
    tree.create("/r/s-", data("own"), { sequential: true });
    port.event({ type: "created", path: "/r/s-0000000006" });
    port.event({ type: "created", path: "/r/s-0000000007" });
    port.answer([{ op: "create", path: "/r/s-0000000007", stat: stat(12n, 0) }]);
    expect(port.waiting).toEqual(["get /r/s-0000000006"]);
  });
});

describe("events of others", () => {
  test("many on one path cost one read more than the one in flight", () => {
    port.event({ type: "changed", path: "/r" });
    for (let count = 0; count < 5; count++) port.event({ type: "changed", path: "/r" });
    expect(port.waiting).toEqual(["get /r"]);
    port.answer(found("1", 11n, 1));
    expect(port.waiting).toEqual(["get /r"]);
    port.answer(found("1", 11n, 1));
    expect(port.waiting).toEqual([]);
    expect(follower.said().slice(2)).toEqual(["put /r=1"]);
  });

  test("a state that is older than the reported one is dropped", () => {
    port.event({ type: "changed", path: "/r" });
    port.answer(found("old", 9n, 0));
    expect(follower.said()).toHaveLength(2);
  });

  test("what we may not read is skipped", async () => {
    port.event({ type: "changed", path: "/r" });
    port.answer(undefined, new NotAllowed("/r"));
    await clock.advance(5_000);
    expect(port.waiting).toEqual([]);
    expect(follower.said()).toHaveLength(2);
  });

  test("a read that breaks on a sound connection ends in a comparison", async () => {
    port.event({ type: "changed", path: "/r" });
    port.answer(undefined, new CallEnded("get /r", "none"));
    expect(follower.said().at(-1)).toBe("gap");
    await clock.advance(1_000);
    expect(port.waiting).toEqual(["stat /r"]);
    port.answer(stat(11n, 1));
    port.answer(found("1", 11n, 1));
    expect(follower.said().slice(2)).toEqual(["gap", "put /r=1", "synced"]);
  });
});

describe("after a gap", () => {
  test("the view counts as incomplete from the moment that the connection breaks", () => {
    port.become("suspended");
    expect(follower.said().at(-1)).toBe("gap");
  });

  test("what did not change costs a stat, what changed a read, what is gone nothing", () => {
    port.event({ type: "created", path: "/r/gone" });
    port.answer(found("x", 11n, 0));
    port.become("suspended");
    port.become("connected");
    port.ready();
    expect(port.waiting).toEqual(["stat /r"]);
    port.answer(stat(10n, 0, 1));
    expect(port.waiting).toEqual(["children /r"]);
    port.answer(["new"]);
    expect(port.waiting).toEqual(["get /r/new"]);
    port.answer(found("n", 12n, 0));
    expect(follower.said().slice(3)).toEqual(["gap", "put /r/new=n", "remove /r/gone", "synced"]);
  });

  test("a walk that its connection breaks is begun anew", () => {
    set();
    port.become("suspended");
    port.answer(undefined, new ConnectionLost("set /r"));
    port.become("connected");
    port.ready();
    expect(port.waiting).toEqual(["stat /r"]);
    port.become("suspended");
    port.answer(undefined, new ConnectionLost("stat /r"));
    port.become("connected");
    port.ready();
    port.answer(stat(10n, 0));
    expect(follower.said().slice(2)).toEqual(["gap", "synced"]);
  });
});

test("pending() counts a comparison that runs and events that were not read yet", () => {
  const other = tree.feed("/o", { interest: () => "data", onChange: () => {} });
  expect(other.pending()).toEqual({ events: 0, walk: 0 });
  port.ready();
  expect(other.pending()).toEqual({ events: 0, walk: 1 });
  port.answer(found("0", 10n, 0));
  expect(other.pending()).toEqual({ events: 0, walk: 0 });
  port.event({ type: "changed", path: "/o" });
  expect(other.pending()).toEqual({ events: 1, walk: 0 });
  // Another event while the first one's read is on its way is one read more, of the same path.
  port.event({ type: "changed", path: "/o" });
  port.event({ type: "created", path: "/o/a" });
  expect(other.pending()).toEqual({ events: 2, walk: 0 });
});
