import { renewedWire, SharedAccounts } from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { Session } from "../src/client/index.ts";
import { resolveCloud } from "../src/clouds/index.ts";
import { intervalOf, keyOf } from "../src/driver.ts";

const { signal } = new AbortController();
const CLOUDS = `
clouds:
  plain: {auth: {auth_url: "http://cloud/v3", username: u, password: one, project_name: p}}
  renewed: {auth: {auth_url: "http://cloud/v3", username: u, password: two, project_name: p}}
  limited: {rate_limit: 5, auth: {auth_url: "http://cloud/v3", username: u, password: one, project_name: p}}
  other: {auth: {auth_url: "http://cloud/v3", username: u, password: one, project_name: q}}
`;

function credentials(certificates: { ca: string | null } = { ca: null }) {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  let opened = 0;
  const used: (string | null)[] = [];
  const connect = ({ ca }: { ca: string | null }) => {
    opened++;
    return {
      async send() {
        used.push(ca);
        throw new Error(ca === "old" ? "unable to verify the first certificate" : "nobody answers");
      },
      close: async () => {
        opened--;
      },
    };
  };
  const sessions = new SharedAccounts<Session>();
  const tls = () => ({ verify: true, cert: null, key: null, ...certificates });
  const read = (path: string) => (path === "/lab/clouds.yaml" ? CLOUDS : undefined);
  const around = { env: {}, cwd: "/lab", home: "/home", read };
  const lease = (name: string, intervalMs: number | null) => {
    const reread = () => resolveCloud({ cloud: name, region: null }, around);
    const cloud = reread();
    const open = () =>
      new Session({
        ...{ clock, random, ...renewedWire({ clock, read: tls, connect }) },
        credential: () => reread().credential,
      });
    const { account, release } = sessions.share(clock, keyOf(cloud), intervalOf(cloud, intervalMs), open);
    return { session: account, release };
  };
  /** Milliseconds between two calls of those who never leave the queue empty. */
  const pause = async ({ session }: { session: Session }): Promise<number> => {
    const times: number[] = [];
    const turns = Array.from({ length: 11 }, async () => {
      await session.limiter.turn(signal);
      times.push(clock.monotonic());
    });
    while (times.length < turns.length) await clock.advance(10);
    return (times.at(-1)! - times[0]!) / 10;
  };
  return { lease, pause, opened: () => opened, used, clock };
}

test("of several providers on one credential the strictest limit counts for all, as long as it is there", async () => {
  const { lease, pause, opened } = credentials();
  const loose = lease("plain", 100);
  expect(await pause(loose)).toBe(100);
  const strict = lease("plain", 500);
  const silent = lease("plain", null);
  // Connections are made with the first request.
  await expect(loose.session.token(signal)).rejects.toThrow("nobody answers");
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
  for (const { session } of [plain, other])
    await expect(session.token(signal)).rejects.toThrow("nobody answers");
  expect(opened()).toBe(2);
});

test("certificates are read again each minute, and when one could not be verified, with new connections", async () => {
  const files = { ca: "old" as string | null };
  const { lease, used, clock, opened } = credentials(files);
  const { session, release } = lease("plain", null);
  const login = () => expect(session.token(signal)).rejects.toThrow("got no answer");
  await login();
  files.ca = "new";
  // The old one did not fit the server, so the file is read at once.
  await login();
  files.ca = "newest";
  await login();
  await clock.advance(60_000);
  await login();
  expect(used).toEqual(["old", "new", "new", "newest"]);
  expect(opened()).toBe(1);
  await release();
  expect(opened()).toBe(0);
});
