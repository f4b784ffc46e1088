import { sleep, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import {
  type CreateOrder,
  DriverError,
  decorate,
  driverScanner,
  type EndedCall,
  guard,
  type ImageTag,
  type PoolConfig,
  type Provider,
  type Tag,
  type UploadOrder,
} from "../src/index.ts";

const signal = new AbortController().signal;
const config = { name: "cloud", driver: "fake" };
const silentLog = { debug() {}, info() {}, warn() {}, error() {} };

function provider(clock: VirtualClock, changes: Partial<Provider> = {}): Provider {
  return {
    async *create() {
      yield { step: "server", deadlineMs: 1 };
      await sleep(clock, 30);
      yield { step: "wait", deadlineMs: 1 };
      return { externalId: "x", interfaceIp: null };
    },
    async *remove() {},
    find: async () => "x",
    list: async () => [],
    removeResource: async () => {},
    quota: async () => ({}),
    need: async () => ({ instances: 1 }),
    inventory: () => [],
    probe: async () => ({ alive: false, why: "" }),
    close: async () => {},
    ...changes,
  };
}

describe("decorate", () => {
  test("what a provider offers beyond machines runs inside the layers too; what it has not stays absent", async () => {
    const clock = new VirtualClock();
    const seen: string[] = [];
    const offers: Provider["offers"] = {
      zones: { list: async () => ["a"] },
      images: {
        formats: ["raw"],
        async *upload() {
          yield { step: "image", deadlineMs: 1 };
          return "i";
        },
        async *remove() {},
      },
    };
    const handles = { clock, log: silentLog };
    const wrapped = guard(provider(clock, { offers }), config, handles, ({ call }) => void seen.push(call));
    expect(guard(provider(clock), config, handles).offers).toBeUndefined();
    expect(wrapped.offers?.console).toBeUndefined();
    expect(await wrapped.offers?.zones?.list({} as PoolConfig, signal)).toEqual(["a"]);
    const upload = wrapped.offers!.images!.upload({} as UploadOrder, { signal, externalId: null });
    await upload.next();
    expect(await upload.next()).toEqual({ done: true, value: "i" });
    await wrapped.offers!.images!.remove({} as ImageTag, { signal, externalId: null }).next();
    expect(seen).toEqual(["zones", "upload", "upload", "removeImage"]);
  });

  test("times every call, each step of a generator by itself, and says how it ended", async () => {
    const clock = new VirtualClock();
    const seen: unknown[] = [];
    const quota = () => Promise.reject(new DriverError("transient", "later"));
    const note = ({ call, result, ms, more }: EndedCall) => void seen.push([call, result, ms, more]);
    const wrapped = guard(provider(clock, { quota }), config, { clock, log: silentLog }, note);
    const steps = wrapped.create({} as CreateOrder, { signal, externalId: null });
    await steps.next();
    const second = steps.next();
    await clock.advance(30);
    await second;
    expect(await steps.next()).toEqual({ done: true, value: { externalId: "x", interfaceIp: null } });
    await expect(wrapped.quota(signal)).rejects.toThrow("later");
    expect(seen).toEqual([
      ["create", "ok", 0, true],
      ["create", "ok", 30, true],
      ["create", "ok", 0, false],
      ["quota", "transient", 0, false],
    ]);
  });

  test("closing a wrapped generator closes the driver's", async () => {
    let closed = false;
    const inner = provider(new VirtualClock(), {
      async *remove() {
        try {
          yield { step: "delete", deadlineMs: 1 };
        } finally {
          closed = true;
        }
      },
    });
    const tag = { installation: "i", provider: "p", pool: "m", nodeId: "1" };
    const steps = decorate(inner, (_name, call) => call()).remove(tag, { signal, externalId: null });
    await steps.next();
    await steps.return();
    expect(closed).toBe(true);
  });

  test("errors without a type get one, with provider and call; an aborted call gives the reason", async () => {
    const broken = () => Promise.reject(new TypeError("boom"));
    const handles = { clock: new VirtualClock(), log: silentLog };
    const wrapped = guard(provider(handles.clock, { list: broken }), config, handles);
    await expect(wrapped.list(signal)).rejects.toMatchObject({ kind: "fatal", message: "cloud: list: boom" });
    const reason = new Error("stop");
    await expect(wrapped.list(AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  test("a driver that ignores its signal holds no caller up", async () => {
    const handles = { clock: new VirtualClock(), log: silentLog };
    const ends: unknown[] = [];
    const never = () => new Promise<never>(() => {});
    const wrapped = guard(provider(handles.clock, { find: never }), config, handles, (end) => ends.push(end));
    const [stop, reason] = [new AbortController(), new Error("too long")];
    const found = wrapped.find({} as Tag, stop.signal);
    stop.abort(reason);
    await expect(found).rejects.toBe(reason);
    expect(ends).toEqual([{ call: "find", result: "aborted", ms: 0, error: reason, more: false }]);
  });
});

describe("driverScanner", () => {
  const failing = (code: string) =>
    driverScanner({ scan: () => Promise.reject(Object.assign(new Error("no"), { code })) });
  const target = { host: "h", port: 22, keys: true, timeoutMs: 1 };

  test.each([
    ["keyscan.timeout", "timeout"],
    ["keyscan.host_key_proof", "host-key"],
    ["keyscan.queue_full", "transient"],
    ["anything", "fatal"],
  ])("%s becomes %s", async (code, kind) => {
    await expect(failing(code).scan(target)).rejects.toMatchObject({ kind, message: "no" });
  });
});
