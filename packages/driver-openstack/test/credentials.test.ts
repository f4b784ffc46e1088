import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { resolveCloud } from "../src/clouds/index.ts";
import { Credentials, type Lease } from "../src/credentials.ts";

const { signal } = new AbortController();
const CLOUDS = `
clouds:
  plain: {auth: {auth_url: "http://cloud/v3", username: u, password: one, project_name: p}}
  renewed: {auth: {auth_url: "http://cloud/v3", username: u, password: two, project_name: p}}
  limited: {rate_limit: 5, auth: {auth_url: "http://cloud/v3", username: u, password: one, project_name: p}}
  other: {auth: {auth_url: "http://cloud/v3", username: u, password: one, project_name: q}}
`;

function credentials() {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  let opened = 0;
  const all = new Credentials(() => {
    opened++;
    return {
      send: () => Promise.reject(new Error("nobody calls")),
      close: async () => {
        opened--;
      },
    };
  });
  const tls = { verify: true, ca: null, cert: null, key: null };
  const read = (path: string) => (path === "/lab/clouds.yaml" ? CLOUDS : undefined);
  const around = { env: {}, cwd: "/lab", home: "/home", read };
  const lease = (name: string, intervalMs: number | null): Lease => {
    const reread = () => resolveCloud({ cloud: name, region: null }, around);
    return all.lease({ clock, random, cloud: reread(), reread, tls, intervalMs });
  };
  /** Milliseconds between two calls of those who never leave the queue empty. */
  const pause = async ({ session }: Lease): Promise<number> => {
    const times: number[] = [];
    const turns = Array.from({ length: 11 }, async () => {
      await session.limiter.turn(signal);
      times.push(clock.monotonic());
    });
    while (times.length < turns.length) await clock.advance(10);
    return (times.at(-1)! - times[0]!) / 10;
  };
  return { lease, pause, opened: () => opened };
}

test("of several providers on one credential the strictest limit counts for all, as long as it is there", async () => {
  const { lease, pause, opened } = credentials();
  const loose = lease("plain", 100);
  expect(await pause(loose)).toBe(100);
  const strict = lease("plain", 500);
  const silent = lease("plain", null);
  expect(new Set([loose, strict, silent].map(({ session }) => session)).size).toBe(1);
  expect(await pause(loose)).toBe(500);
  await strict.release();
  expect(await pause(silent)).toBe(100);
  await strict.release();
  await loose.release();
  expect(opened()).toBe(1);
  await silent.release();
  expect(opened()).toBe(0);
});

test("a limit of clouds.yaml is one of them; a new secret is the same customer, another project is not", async () => {
  const { lease, pause, opened } = credentials();
  const plain = lease("plain", 100);
  const limited = lease("limited", null);
  expect(limited.session).toBe(plain.session);
  expect(await pause(plain)).toBe(200);
  expect(lease("renewed", null).session).toBe(plain.session);
  const other = lease("other", null);
  expect(other.session).not.toBe(plain.session);
  expect(await pause(other)).toBe(0);
  expect(opened()).toBe(2);
});
